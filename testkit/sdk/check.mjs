// The client for TypeScript against a fleet; run by check.py.

import assert from "node:assert/strict";

const { ApiError, JobFailed, Trawl, WaitTimeout } = await import(process.env.SDK);
const { TRAWL_URL, LOSSY_URL, TRAWL_TOKEN: token, SITE } = process.env;
const trawl = new Trawl(TRAWL_URL, { token });

async function items(crawl) {
  const found = [];
  for await (const item of trawl.items(crawl)) found.push(item);
  return found;
}

async function aCrawlIsStartedWaitedForAndItsItemsRead() {
  const { crawl } = await trawl.start({ spider: "shop", arguments: { category: "ts" } });
  const ended = await trawl.wait(crawl, 60);
  assert.equal(ended.done, 1);
  assert.deepEqual((await items(crawl)).map((item) => item.url), [`${SITE}/ts`]);
  assert.equal((await trawl.crawl(crawl)).over, true);
}

async function aStartWhoseAnswerIsLostIsOneCrawl() {
  const [lossy, key] = [new Trawl(LOSSY_URL, { token }), crypto.randomUUID()];
  const { crawl } = await lossy.start({ spider: "shop", arguments: { category: "ts-lost" } }, key);
  const again = await trawl.start({ spider: "shop", arguments: { category: "ts-other" } }, key);
  assert.equal(again.crawl, crawl);
  await trawl.wait(crawl, 60);
}

async function whatGoesWrongIsThrown() {
  await assert.rejects(trawl.crawl("none"), (error) => {
    assert.ok(error instanceof ApiError);
    assert.deepEqual([error.status, error.kind], [404, "not-found"]);
    return true;
  });
  await assert.rejects(new Trawl(TRAWL_URL, { token: "guessed" }).crawl("none"), { status: 401 });
  const { crawl } = await trawl.start({ spider: "nowhere" });
  await assert.rejects(trawl.wait(crawl, 60), JobFailed);
}

async function aCrawlIsCancelled() {
  const { crawl } = await trawl.start({ urls: [`${SITE}/ts/slow`] });
  await assert.rejects(trawl.wait(crawl, 0.5), WaitTimeout);
  assert.equal((await trawl.cancel(crawl)).status, "cancelled");
}

async function everyOtherCallHasItsTypes() {
  const { data } = await trawl.api.GET("/api/v1/workers");
  assert.equal(data.workers.length, 2);
}

for (const scene of [
  aCrawlIsStartedWaitedForAndItsItemsRead,
  aStartWhoseAnswerIsLostIsOneCrawl,
  whatGoesWrongIsThrown,
  aCrawlIsCancelled,
  everyOtherCallHasItsTypes,
]) {
  await scene();
}
