// A page handler in Node that uses the plain protocol of docs/handlers.md: it extracts the title of each page and its
// links. If a page has a search form, it submits a search, with a request whose data comes back with its page.
//
//     [handler]
//     run = ["node", "handler.mjs"]
//     mode = "stream"

import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

const say = (answer) => process.stdout.write(JSON.stringify(answer) + "\n");

const body = ({ text, base64, file }) => text ?? (file ? readFileSync(file) : Buffer.from(base64, "base64")).toString();

function parse(page) {
  const html = body(page);
  const title = html.match(/<title>([^]*?)<\/title>/)?.[1].trim() ?? null;
  const urls = [...html.matchAll(/<a [^>]*href="([^"#]+)"/g)].map(([, href]) => href);
  const search = html.match(/<form [^>]*action="([^"]+)"[^>]*method="post"/i)?.[1];
  const headers = { "Content-Type": "application/x-www-form-urlencoded" };
  if (search) urls.push({ url: search, method: "POST", headers, body: "q=trawl", data: { from: page.url } });
  return { items: [page.data ? { title, from: page.data.from } : { title }], urls };
}

for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  if (request.type === "start") continue;
  try {
    if (request.type !== "page") throw new Error("this program reads pages alone");
    say({ id: request.id, ...parse(request.page), result: 0 });
  } catch (error) {
    say({ id: request.id, logs: [{ message: error.stack, level: 3 }], result: 1 });
  }
}
