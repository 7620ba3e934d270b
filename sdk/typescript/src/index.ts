/**
 * A client of trawl's HTTP API (`trawl api`), for Node 20 and browsers.
 *
 * ```ts
 * const trawl = new Trawl("http://127.0.0.1:8080", { token });
 * const { crawl } = await trawl.start({ spider: "shop", arguments: { category: "books" } });
 * await trawl.wait(crawl);
 * for await (const item of trawl.items(crawl)) console.log(item.url, item.fields);
 * ```
 *
 * `trawl.api` has every other call of the API, with the types of its document.
 */

import createClient, { type Client } from "openapi-fetch";

import type { components, paths } from "./api.js";

export type { components, paths } from "./api.js";

export type Crawl = components["schemas"]["Crawl"];
export type NewCrawl = components["schemas"]["NewCrawl"];
export type Problem = components["schemas"]["Problem"];

/** The data extracted from a page. There may be more members. */
export interface Item {
  id: string;
  url: string;
  crawl: string;
  spider: string;
  fetched_at: string;
  status: number;
  depth: number;
  fields: Record<string, unknown>;
}

/** A page of items, with the cursor of the next one; `next` is missing on the last page of a crawl that is over. */
export interface Page {
  items: Item[];
  next?: string;
}

/** The longest wait of one request, in seconds: the API allows 60, but some proxies time out just then. */
const LONGEST_WAIT = 50;
/** The time limit of a response, in milliseconds: the API starts each within 90 s. */
const LONGEST_CALL = 100_000;
/** The pauses between attempts, in milliseconds. */
const FIRST_PAUSE = 250;
const LONGEST_PAUSE = 8_000;

/** The API answered with a problem (RFC 9457). `kind` is the last part of its `type`, such as `not-found`. */
export class ApiError extends Error {
  readonly status: number;
  readonly type: string;
  readonly kind: string;
  readonly title: string;
  readonly detail: string;

  constructor(status: number, problem: Partial<Problem>) {
    const { type = "about:blank", title = "", detail = "" } = problem;
    super(`${status} ${title}${detail && `: ${detail}`}`);
    this.name = "ApiError";
    this.status = status;
    this.type = type;
    this.kind = type.slice(type.lastIndexOf(":") + 1);
    this.title = title;
    this.detail = detail;
  }
}

/** A crawl could not start: its spider does not exist, or none of its sources can be read. */
export class JobFailed extends Error {
  constructor(readonly crawl: string, readonly problem: string) {
    super(`crawl ${crawl} has failed: ${problem}`);
    this.name = "JobFailed";
  }
}

/** A crawl was not over in time. */
export class WaitTimeout extends Error {
  constructor(readonly crawl: string, seconds: number) {
    super(`crawl ${crawl} is not over after ${seconds} s`);
    this.name = "WaitTimeout";
  }
}

export interface Options {
  /** Sent with each call. */
  token?: string;
  /** The number of seconds during which a call is retried if it is safe to repeat; 30 by default. */
  retryFor?: number;
}

export class Trawl {
  /** Every call of the API. Errors are thrown, so `error` of an answer is always undefined. */
  readonly api: Client<paths>;

  constructor(baseUrl = "http://127.0.0.1:8080", { token, retryFor = 30 }: Options = {}) {
    this.api = createClient<paths>({
      baseUrl,
      headers: token === undefined ? {} : { Authorization: `Bearer ${token}` },
      fetch: (request) => fetchAgain(request, retryFor * 1000),
      redirect: "error",
    });
    this.api.use({ onResponse: ({ response }) => thrown(response) });
  }

  /**
   * Submits a crawl, which a worker starts when it is first in the queue. Retries of the call, and other calls with the
   * same `key`, even by other programs, do not submit another one.
   */
  async start(wanted: NewCrawl, key: string = crypto.randomUUID()): Promise<Crawl> {
    const header = { "Idempotency-Key": `"${key}"` };
    return data(await this.api.POST("/api/v1/crawls", { body: wanted, params: { header } }));
  }

  /** Returns the state of a crawl. */
  async crawl(id: string): Promise<Crawl> {
    return data(await this.api.GET("/api/v1/crawls/{id}", { params: { path: { id } } }));
  }

  /** Cancels the rest of a crawl. */
  async cancel(id: string): Promise<Crawl> {
    return data(await this.api.POST("/api/v1/crawls/{id}/cancel", { params: { path: { id } } }));
  }

  /** Waits until a crawl is over. Throws `WaitTimeout` after `seconds`, and `JobFailed` if the crawl could not start. */
  async wait(id: string, seconds = Infinity): Promise<Crawl> {
    const until = Date.now() + seconds * 1000;
    for (;;) {
      const left = Math.min(LONGEST_WAIT, (until - Date.now()) / 1000);
      const crawl = await this.look(id, Math.max(left, 0));
      if (crawl.over) {
        if (crawl.job?.status === "failed") throw new JobFailed(id, crawl.job.problem ?? "");
        return crawl;
      }
      if (left <= 0) throw new WaitTimeout(id, seconds);
    }
  }

  /**
   * Returns the items of a crawl in the order in which they were stored, up to the end of the crawl. For a running crawl
   * they arrive as they are stored. An item that was stored twice because of a crash comes twice, with the same `id`.
   */
  async *items(id: string): AsyncGenerator<Item, void, undefined> {
    for await (const page of this.pages(id)) yield* page.items;
  }

  /** Returns the items in pages. Pass `next` of a page as `cursor` to continue after it. */
  async *pages(id: string, cursor?: string): AsyncGenerator<Page, void, undefined> {
    for (;;) {
      const query = { limit: 1000, ...(cursor !== undefined && { cursor }) };
      const answer = data(await this.api.GET("/api/v1/crawls/{id}/items", { params: { path: { id }, query } }));
      // The API's document does not describe the members of an item.
      const page = answer as Page;
      yield page;
      if (page.next === undefined) return;
      if (page.items.length === 0) await this.look(id, 1);
      cursor = page.next;
    }
  }

  /** Returns the state of a crawl once it is over, or after this many seconds. */
  private async look(id: string, seconds: number): Promise<Crawl> {
    const query = { wait: `${Math.round(seconds * 1000)}ms` };
    return data(await this.api.GET("/api/v1/crawls/{id}", { params: { path: { id }, query } }));
  }
}

/** Returns the data of an answer; answers without data have been thrown as errors. */
function data<T>(answer: { data?: T }): NonNullable<T> {
  if (answer.data === undefined || answer.data === null) throw new Error("the API's answer is empty");
  return answer.data;
}

async function thrown(response: Response): Promise<undefined> {
  if (response.ok) return;
  const problem: unknown = await response.json().catch(() => undefined);
  throw new ApiError(response.status, typeof problem === "object" && problem !== null ? problem : {});
}

/** Whether a request may be repeated. Replaying dead letters may not: they may have failed again meanwhile. */
function mayBeRepeated(request: Request): boolean {
  return (
    request.method === "GET" ||
    request.headers.has("Idempotency-Key") ||
    /\/(urls|pause|resume|cancel|block|unblock)$/.test(new URL(request.url).pathname)
  );
}

/** Sends a request. If it may be repeated, retries it after a broken connection, 429 or 503, for `duration` milliseconds at most. */
async function fetchAgain(request: Request, duration: number): Promise<Response> {
  if (!mayBeRepeated(request)) return fetchOnce(request);
  const until = Date.now() + duration;
  for (let pause = FIRST_PAUSE; ; pause = Math.min(2 * pause, LONGEST_PAUSE)) {
    const spread = pause * (0.5 + Math.random() / 2);
    const answer = await fetchOnce(request.clone()).catch((error: unknown) => {
      if (request.signal.aborted || Date.now() + spread > until) throw error;
    });
    const wait = Math.max(spread, Number(answer?.headers.get("Retry-After")) * 1000 || 0);
    if (answer && ((answer.status !== 429 && answer.status !== 503) || Date.now() + wait > until)) return answer;
    await answer?.body?.cancel();
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
}

function fetchOnce(request: Request): Promise<Response> {
  return fetch(request, { signal: AbortSignal.any([request.signal, AbortSignal.timeout(LONGEST_CALL)]) });
}
