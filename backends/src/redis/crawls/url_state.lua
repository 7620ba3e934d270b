-- ARGV: crawl id, url, short. Returns the state of a URL as named fields; for one without a record, whether it was
-- seen.
local url = ARGV[2]
local text = redis.call('HGET', PENDING, url)
if not text then
  local requests = requests_of(CRAWL, OWN_PLAIN)
  if requests then
    return {'seen', was_asked(requests, url, NOW) and 1 or 0}
  end
  return {'seen', knows(seen_of(CRAWL), {{url = url, short = ARGV[3]}})[1]}
end
local record = parse(text)
if not record then
  return {is_newer(text) and 'newer' or 'record', text}
end
local reply = {
  'state', record.state, 'since', record.since, 'lane', record.lane, 'attempts', record.attempts, 'starts', record.starts,
  'begun', redis.call('SISMEMBER', BEGUN, url),
}
local function tell(name, value)
  if value then
    reply[#reply + 1] = name
    reply[#reply + 1] = value
  end
end
tell('holder', record.holder ~= '-' and record.holder)
tell('deadline', record.deadline and record.deadline + idle_of(CRAWL))
tell('unconfirmed', redis.call('ZSCORE', OUTBOX, ARGV[1] .. ' ' .. url))
return reply
