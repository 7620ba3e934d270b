-- KEYS: crawl, then the URLs seen by its spider and by the crawl itself, each plain and packed. ARGV: url, short.
local requests = requests_of(KEYS[1], KEYS[4])
if requests then
  return was_asked(requests, ARGV[1], now_ms()) and 1 or 0
end
return knows(seen_of(KEYS[1], 2), {{url = ARGV[1], short = ARGV[2]}})[1]
