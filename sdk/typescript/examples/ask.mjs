// A task handler in Node that sends its own requests: each recipe is a URL, and its title becomes an item. It requests
// absolute URLs from the worker's proxy, with plain requests that any version of Node can make, so that robots.txt, the
// host's pace and its back-off apply to https as well.
//
//     [handler]
//     run = ["node", "ask.mjs"]

import { request } from "node:http";

const proxy = new URL(process.env.TRAWL_PROXY);
const login = Buffer.from(`${proxy.username}:${proxy.password}`).toString("base64");

// Resolves to the host's response. Rejects if the proxy refuses to request it, with the reason as `message`.
function ask(url, { method = "GET", headers = {}, body } = {}) {
  const to = { host: proxy.hostname, port: proxy.port, method, path: new URL(url).href };
  const fields = { host: new URL(url).host, "proxy-authorization": `Basic ${login}`, ...headers };
  return new Promise((resolve, reject) => {
    const sending = request({ ...to, headers: fields }, async (answer) => {
      try {
        const text = Buffer.concat(await answer.toArray()).toString();
        if (answer.headers["proxy-status"]?.startsWith("trawl;")) throw new Error(`${url}: ${text.trim()}`);
        resolve({ status: answer.statusCode, headers: answer.headers, text });
      } catch (error) {
        reject(error);
      }
    });
    sending.on("error", reject).end(body);
  });
}

const { recipe } = JSON.parse(process.argv[2]);
try {
  const { status, text } = await ask(recipe);
  const title = text.match(/<title>([^]*?)<\/title>/)?.[1].trim() ?? null;
  console.log(JSON.stringify({ result: 0, items: [{ status, title }] }));
} catch (error) {
  console.log(JSON.stringify({ result: 1, logs: [{ message: error.message, level: 3 }] }));
}
