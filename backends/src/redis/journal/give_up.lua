-- KEYS: the lease of the process that reads the journal. ARGV: this process's lease. Gives it up.
if redis.call('GET', KEYS[1]) == ARGV[1] then
  redis.call('DEL', KEYS[1])
end
return redis.status_reply('OK')
