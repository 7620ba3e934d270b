-- The seen URLs: a set of URLs, in one of two forms. Plain: `plain`, a set of URLs. Packed: `packed:0`, `packed:1`
-- and so on, sets of the first 64 bits of their fingerprints as integers, and `packed`, a hash with the number of
-- URLs and buckets. Redis keeps up to 512 integers as a sorted array. So that no bucket outgrows that, one of them
-- is split each time that number of URLs was added, in turn (linear hashing). While a plain set is being packed
-- both exist, and a URL is in either.
--
-- Scripts name URLs by entries: tables with `url`, and `short`, the first 64 bits of its fingerprint, in decimal.
-- Commands that create a key come before those that change one: a script may fail there while a cluster moves its
-- slot.

-- Average number of URLs in a bucket; in one that is soon split, twice as many.
local LOAD = 128

local function url_set(plain, packed)
  local state = redis.call('HMGET', packed, 'urls', 'buckets')
  local set = {plain = plain, packed = packed, urls = tonumber(state[1]) or 0, buckets = tonumber(state[2]) or 0}
  set.is_packed = set.buckets > 0
  set.has_plain = not set.is_packed or redis.call('EXISTS', plain) == 1
  -- Number of buckets at the beginning of this turn: a power of two.
  set.turn = 1
  while set.turn * 2 <= set.buckets do
    set.turn = set.turn * 2
  end
  return set
end

-- The set that decides which URLs are new to a crawl: its own, if it is a recrawl.
local function seen_of(crawl)
  if is_recrawl(crawl) then
    return url_set(OWN_PLAIN, OWN_PACKED)
  end
  return url_set(SEEN_PLAIN, SEEN_PACKED)
end

local function column(entries, name)
  local values = {}
  for i, entry in ipairs(entries) do
    values[i] = entry[name]
  end
  return values
end

-- A number that spreads URLs over buckets: as many of the last digits as a Lua number can hold.
local function spread(short)
  return tonumber(string.sub(short, -15))
end

local function bucket(set, short)
  local at = spread(short) % (set.turn * 2)
  return set.packed .. ':' .. (at < set.buckets and at or at - set.turn)
end

-- Splits the bucket whose turn it is: about half of it moves to a new one.
local function split(set)
  local from, into = set.packed .. ':' .. (set.buckets - set.turn), set.packed .. ':' .. set.buckets
  local moved = {}
  for _, short in ipairs(redis.call('SMEMBERS', from)) do
    if spread(short) % (set.turn * 2) == set.buckets then
      moved[#moved + 1] = short
    end
  end
  for first = 1, #moved, 1000 do
    local last = math.min(first + 999, #moved)
    redis.call('SADD', into, unpack(moved, first, last))
    redis.call('SREM', from, unpack(moved, first, last))
  end
  set.buckets = set.buckets + 1
  if set.buckets == set.turn * 2 then
    set.turn = set.buckets
  end
end

local function write_size(set)
  redis.call('HSET', set.packed, 'urls', set.urls, 'buckets', set.buckets)
end

local function pack_from_now_on(set)
  set.is_packed, set.buckets = true, math.max(set.buckets, 1)
end

-- Returns for each entry 1 if the set has it, or 0.
local function knows(set, entries)
  local known = set.has_plain and redis.call('SMISMEMBER', set.plain, unpack(column(entries, 'url'))) or {}
  if set.is_packed then
    for i, entry in ipairs(entries) do
      if known[i] ~= 1 then
        known[i] = redis.call('SISMEMBER', bucket(set, entry.short), entry.short)
      end
    end
  end
  return known
end

local function learn(set, entries)
  if #entries == 0 then
    return
  end
  if not set.is_packed and BEGINS_PACKED and redis.call('EXISTS', set.plain) == 0 then
    pack_from_now_on(set)
  end
  if not set.is_packed then
    redis.call('SADD', set.plain, unpack(column(entries, 'url')))
    return
  end
  while set.urls + #entries > set.buckets * LOAD do
    split(set)
  end
  for _, entry in ipairs(entries) do
    set.urls = set.urls + redis.call('SADD', bucket(set, entry.short), entry.short)
  end
  write_size(set)
end

local function forget(set, entries)
  if #entries == 0 then
    return
  end
  if set.has_plain then
    redis.call('SREM', set.plain, unpack(column(entries, 'url')))
  end
  if set.is_packed then
    for _, entry in ipairs(entries) do
      set.urls = set.urls - redis.call('SREM', bucket(set, entry.short), entry.short)
    end
    write_size(set)
  end
end

-- Deletes a set that is no longer used, or a part of it. Returns the number of buckets left.
local function drop(set)
  local left = math.max(set.buckets - 500, 0)
  local keys = {set.plain}
  for at = left, set.buckets - 1 do
    keys[#keys + 1] = set.packed .. ':' .. at
  end
  if left > 0 then
    redis.call('HSET', set.packed, 'buckets', left)
  else
    keys[#keys + 1] = set.packed
  end
  redis.call('UNLINK', unpack(keys))
  return left
end
