-- ARGV: id. Notes that the stream `journal` has the job.
local job = find(ARGV[3])
if job then
  redis.call('HSET', job.key, 'kept', 1)
end
return redis.status_reply('OK')
