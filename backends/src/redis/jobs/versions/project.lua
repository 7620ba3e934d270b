-- KEYS: project. A hash: `number` counts its changes; `v:<version>` is the JSON of a version: the number of the
-- change that added it, its time, and for each spider the hash of its text; `t:<hash>` is a text.
local PROJECT = KEYS[1]

-- All versions, the latest last.
local function versions()
  local all = {}
  for _, field in ipairs(redis.call('HKEYS', PROJECT)) do
    if string.sub(field, 1, 2) == 'v:' then
      local version = cjson.decode(redis.call('HGET', PROJECT, field))
      version.field = field
      table.insert(all, version)
    end
  end
  table.sort(all, function(one, other) return one.number < other.number end)
  return all
end

-- Deletes texts that no version has any more.
local function drop_texts()
  local named = {}
  for _, version in ipairs(versions()) do
    for _, hash in pairs(version.spiders) do
      named['t:' .. hash] = true
    end
  end
  for _, field in ipairs(redis.call('HKEYS', PROJECT)) do
    if string.sub(field, 1, 2) == 't:' and not named[field] then
      redis.call('HDEL', PROJECT, field)
    end
  end
end
