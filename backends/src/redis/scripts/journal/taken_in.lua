-- KEYS: which run took the journal in, and by which lease; the lease of who takes it in. ARGV: this lease, the run. Notes that it is taken in, unless
-- the store was emptied or restarted meanwhile. Returns whether it is noted.
if redis.call('GET', KEYS[2]) ~= ARGV[1] or run_id() ~= ARGV[2] then
  return 0
end
redis.call('SET', KEYS[1], ARGV[2] .. ' ' .. ARGV[1])
redis.call('DEL', KEYS[2])
return 1
