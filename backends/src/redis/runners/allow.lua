-- KEYS: a runner. ARGV: the field of a project, the access.
-- Returns whether the runner is known: who takes the name of one that was forgotten has no access.
if redis.call('HEXISTS', KEYS[1], 'key') == 0 then
  return 0
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return 1
