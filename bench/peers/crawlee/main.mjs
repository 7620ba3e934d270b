// Crawlee's CheerioCrawler over the URLs in the file URLS: one JSON line an item, {url, title, links}, to the file OUT.
import { createWriteStream } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { finished } from 'node:stream/promises';
import { CheerioCrawler, LogLevel, RequestList, log } from '@crawlee/cheerio';
import { ImpitHttpClient } from '@crawlee/impit-client';

const concurrency = Number(process.env.CONCURRENCY ?? 50);
const urls = (await readFile(process.env.URLS, 'utf8')).split('\n').filter(Boolean);
const out = createWriteStream(process.env.OUT);
let written = 0;

function absolute(href, base) {
    return URL.canParse(href, base) ? new URL(href, base).href : null;
}

log.setLevel(LogLevel.OFF);

const crawler = new CheerioCrawler({
    // With a name, Crawlee keeps the list and its state in its storage, the state once a minute.
    requestList: await RequestList.open('urls', urls),
    httpClient: new ImpitHttpClient(),
    // From the start as many at a time as are allowed: no slow climb.
    minConcurrency: concurrency,
    maxConcurrency: concurrency,
    maxRequestRetries: 0,
    useSessionPool: false,
    persistCookiesPerSession: false,
    requestHandler({ request, $ }) {
        const links = $('a[href]')
            .map((_, a) => absolute(a.attribs.href, request.loadedUrl))
            .get();
        out.write(`${JSON.stringify({ url: request.url, title: $('title').first().text().trim(), links })}\n`);
        written += 1;
    },
});

await crawler.run();
out.end();
await finished(out);
process.exitCode = written === urls.length ? 0 : 1;
