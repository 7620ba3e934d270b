#!/usr/bin/env node
// Runs the program of the package for this platform, which npm installed beside this one.
"use strict";

const { spawn } = require("node:child_process");

const platform = `trawl-${process.platform}-${process.arch}`;
let program;
try {
  program = require.resolve(`${platform}/bin/trawl`);
} catch {
  console.error(
    `trawl: the package ${platform} is missing: trawl runs on Linux on x64, and needs optional dependencies (not npm --omit=optional)`,
  );
  process.exit(1);
}

const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
// A terminal sends this one to both.
process.on("SIGINT", () => {});
for (const signal of ["SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
child.on("error", (error) => {
  console.error(`trawl: cannot run ${program}: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => {
  if (signal === null) process.exit(code);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
