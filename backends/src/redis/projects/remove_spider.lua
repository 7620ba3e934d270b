-- KEYS: the spiders of projects. ARGV: a project, a spider.
-- Returns whether the project had the spider.
if redis.call('HGET', KEYS[1], ARGV[2]) ~= ARGV[1] then
  return 0
end
return redis.call('HDEL', KEYS[1], ARGV[2])
