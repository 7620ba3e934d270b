-- ARGV: url, short.
local requests = requests_of(CRAWL, OWN_PLAIN)
if requests then
  return was_asked(requests, ARGV[1], now_ms()) and 1 or 0
end
return knows(seen_of(CRAWL), {{url = ARGV[1], short = ARGV[2]}})[1]
