// A task handler in Node that asks the web by itself: each recipe is a URL, and its title becomes an item. It asks the worker's proxy for whole URLs,
// by the plain requests that Node of any version can make, so that robots.txt, the host's pace and its back-off hold for https as well.
//
//     [handler]
//     run = ["node", "ask.mjs"]

import { request } from "node:http";

const proxy = new URL(process.env.TRAWL_PROXY);
const login = Buffer.from(`${proxy.username}:${proxy.password}`).toString("base64");

// Resolves to what the host answers. Rejects where the proxy says why it does not ask the host, in its `message`.
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
