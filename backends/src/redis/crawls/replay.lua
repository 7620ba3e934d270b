-- `FROM`, `FAILED` and `GONE` are of the crawl in which they failed, the other keys of the crawl to admit them to. ARGV:
-- id of the latter, whether it is the same crawl (1 or 0), then url, short for each. Returns 0 if that crawl admits none;
-- otherwise 1, then each like sweep.lua.
local status = redis.call('HGET', CRAWL, 'status')
if not status or is_over(status) then
  return {'0'}
end
-- Parses a note; returns defaults if it cannot be read.
local function note_of(text)
  local ok, note = pcall(cjson.decode, text)
  note = ok and type(note) == 'table' and note or {}
  local depth, referrer = tonumber(note.depth), note.referrer
  local class = type(note.class) == 'string' and note.class or note.crash == true and 'crash'
    or note.reason == 'corrupt' and 'corrupt' or nil
  return {
    lane = note.lane == 'priority' and 'priority' or 'bulk', reason = note.reason, class = class,
    depth = depth and depth >= 0 and depth <= 65535 and depth or 0,
    referrer = type(referrer) == 'string' and string.find(referrer, '^%S+$') and referrer or '-',
  }
end

local now = int(now_ms())
local answer, seen, hosts = {'1'}, {}, {}
-- The ends of entries that did not end as failed.
local KINDS = {expired = 'expired', blocked = 'skipped'}
for i = 3, #ARGV, 2 do
  local url = ARGV[i]
  local text = redis.call('HGET', FAILED, url)
  local payload = text and has_payload(url) and redis.call('HGET', recipes_of(FAILED), url) or ''
  -- An entry whose payload is lost stays in the list.
  local is_whole = payload ~= '' or not has_payload(url)
  if text and is_whole and redis.call('HEXISTS', PENDING, url) == 0 then
    local note = note_of(text)
    local lane, depth, referrer = is_task(url) and 'task' or note.lane, int(note.depth), note.referrer
    if payload ~= '' and ARGV[2] ~= '1' then
      redis.call('HSET', recipes_of(PENDING), url, payload)
      redis.call('HDEL', recipes_of(FAILED), url)
    end
    redis.call('HSET', PENDING, url, format_new(url, now, lane, depth, nil, referrer))
    redis.call('ZADD', OUTBOX, now, ARGV[1] .. ' ' .. url)
    seen[#seen + 1] = {url = url, short = ARGV[i + 1]}
    redis.call('HDEL', FAILED, url)
    redis.call('SREM', GONE, url)
    if ARGV[2] == '1' then
      local kind = KINDS[note.reason] or 'failed'
      redis.call('HINCRBY', FROM, kind, -1)
      add_host(hosts, url, kind, -1)
      local why = note.reason == 'blocked' and 'blocked' or note.class
      if why then
        redis.call('HINCRBY', FROM, kind .. ':' .. why, -1)
      end
    else
      redis.call('HINCRBY', CRAWL, 'admitted', 1)
      add_host(hosts, url, 'admitted', 1)
    end
    for _, part in ipairs({url, lane, depth, '-', referrer, '-', payload}) do
      answer[#answer + 1] = part
    end
  end
end
write(HOSTS, hosts)
learn(seen_of(CRAWL), seen)
return answer
