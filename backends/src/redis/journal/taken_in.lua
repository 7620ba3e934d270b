-- KEYS: the run that has read the journal, with the lease by which it did; the lease of the process that reads it.
-- ARGV: this process's lease, the run. Notes that the journal is read, unless the store was emptied or restarted
-- meanwhile. Returns whether that is noted.
if redis.call('GET', KEYS[2]) ~= ARGV[1] or run_id() ~= ARGV[2] then
  return 0
end
redis.call('SET', KEYS[1], ARGV[2] .. ' ' .. ARGV[1])
redis.call('DEL', KEYS[2])
return 1
