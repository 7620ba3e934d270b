-- Who reads sources for a spider: a hash of each lease's token to "<lapses at> <crawl> <holder>". All that live are of one crawl.

-- The leases that live. Those that have lapsed are taken out.
local function living_leases(key, now)
  local living, all = {}, redis.call('HGETALL', key)
  for at = 1, #all, 2 do
    local lapses, crawl, holder = string.match(all[at + 1], '^(%d+) (%S+) (.*)$')
    local left = tonumber(lapses) - now
    if left > 0 then
      living[#living + 1] = {token = all[at], crawl = crawl, holder = holder, left = left}
    else
      redis.call('HDEL', key, all[at])
    end
  end
  return living
end

-- The crawl and holder of the lease that this token proves, or nil.
local function lease_of(key, token, now)
  local lapses, of = string.match(redis.call('HGET', key, token) or '', '^(%d+) (.*)$')
  return lapses and tonumber(lapses) > now and of or nil
end

-- Lets a lease live for `ttl` ms from now, and the key for as long as any of them.
local function grant(key, token, of, now, ttl)
  redis.call('HSET', key, token, int(now + ttl) .. ' ' .. of)
  if redis.call('PTTL', key) < ttl then
    redis.call('PEXPIRE', key, ttl)
  end
end
