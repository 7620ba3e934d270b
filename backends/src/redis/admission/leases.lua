-- Who reads sources for a spider: a hash of each lease's token to "<lapses at> <crawl> <holder> <sources>". All that live are of one
-- crawl. <sources> names what is read, and is left out by those who read none.
--
-- Which sources of a crawl were read, its hash says: `unread <sources>` is 1 if they were left, and 0 once anybody has read them to
-- their end; `read` is 1 once that is so of any.

-- How long a lease is known after it has lapsed: whoever looks by then notes what was left unread.
local KNOWN_FOR = 24 * 3600 * 1000

-- Notes that a lease has ended before its sources were read.
local function leave_unread(key, crawl, sources)
  if sources == '' then
    return
  end
  local of = string.gsub(key, 'leases$', 'crawl:') .. crawl
  local status = redis.call('HGET', of, 'status')
  if status and not is_over(status) then
    redis.call('HSETNX', of, 'unread ' .. sources, 1)
  end
end

-- The leases that live. Those that have lapsed are taken out.
local function living_leases(key, now)
  local living, all = {}, redis.call('HGETALL', key)
  for at = 1, #all, 2 do
    local lapses, crawl, holder, sources = string.match(all[at + 1], '^(%d+) (%S+) (%S*) ?(%S*)$')
    local left = tonumber(lapses) - now
    if left > 0 then
      living[#living + 1] = {token = all[at], crawl = crawl, holder = holder, left = left}
    else
      redis.call('HDEL', key, all[at])
      leave_unread(key, crawl, sources)
    end
  end
  return living
end

-- The crawl, holder and sources of the lease that this token proves, or nil.
local function lease_of(key, token, now)
  local lapses, of = string.match(redis.call('HGET', key, token) or '', '^(%d+) (.*)$')
  return lapses and tonumber(lapses) > now and of or nil
end

local function sources_of(lease)
  return string.match(lease, '^%S+ %S+ (%S+)$') or ''
end

-- Lets a lease live for `ttl` ms from now, and the key for longer than any of them.
local function grant(key, token, of, now, ttl)
  redis.call('HSET', key, token, int(now + ttl) .. ' ' .. of)
  if redis.call('PTTL', key) < ttl + KNOWN_FOR then
    redis.call('PEXPIRE', key, ttl + KNOWN_FOR)
  end
end
