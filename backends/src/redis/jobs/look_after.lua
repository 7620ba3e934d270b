-- ARGV: maximum number, time in ms within which a checked job is left out. Returns jobs that wait for the end of
-- their crawls, each as its id and its fields.
local now, jobs = now_ms(), {}
for _, id in ipairs(redis.call('ZRANGEBYSCORE', key('fed'), '-inf', int(now - ARGV[4]), 'LIMIT', 0, ARGV[3])) do
  redis.call('ZADD', key('fed'), int(now), id)
  jobs[#jobs + 1] = {id, fields_of(id)}
end
return jobs
