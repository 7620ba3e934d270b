-- KEYS: the lease of who takes the journal in. ARGV: this lease. Gives it up.
if redis.call('GET', KEYS[1]) == ARGV[1] then
  redis.call('DEL', KEYS[1])
end
return redis.status_reply('OK')
