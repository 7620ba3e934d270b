-- ARGV: version; none for all. Removes it, and keeps the number of changes. Returns whether it existed, the number
-- of versions left, and the number of this change.
local was_there = 0
for _, field in ipairs(redis.call('HKEYS', PROJECT)) do
  local is_meant = field ~= 'number'
  if ARGV[1] then
    is_meant = field == 'v:' .. ARGV[1]
  end
  if is_meant then
    was_there = redis.call('HDEL', PROJECT, field)
  end
end
local number = redis.call('HINCRBY', PROJECT, 'number', was_there)
drop_texts()
return {was_there, #versions(), number}
