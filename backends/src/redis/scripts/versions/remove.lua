-- ARGV: version. Removes it. Returns whether it was there, and how many are left.
local was_there = redis.call('HDEL', PROJECT, 'v:' .. ARGV[1])
drop_texts()
return {was_there, #versions()}
