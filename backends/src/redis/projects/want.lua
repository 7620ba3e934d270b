-- KEYS: the projects, their wanted versions, the reports on that of the project. ARGV: a project, its wanted version.
-- Returns whether there is such a project.
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  return 0
end
if redis.call('HGET', KEYS[2], ARGV[1]) ~= ARGV[2] then
  redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
  redis.call('UNLINK', KEYS[3])
end
return 1
