-- ARGV: id, spider, priority, idempotency key (empty for none), number, time of submission, status, whether it is
-- to be cancelled, its runner, start of its run, remaining lease of its feeder in ms (empty for none), problem,
-- time of its end (each empty for none), then the fields of the job. Brings a job up to the stream `journal`, and
-- never back. Returns whether it did not exist.
local id, spider, idempotency_key, number, status = ARGV[3], ARGV[4], ARGV[6], ARGV[7], ARGV[9]
local runner, started, lease, problem = ARGV[11], ARGV[12], ARGV[13], ARGV[14]
local is_new = redis.call('EXISTS', PREFIX .. id) == 0
if is_new then
  redis.call('HSET', PREFIX .. id, 'number', number, 'asked', ARGV[8], 'status', 'pending', 'kept', 1, unpack(ARGV, 16))
  redis.call('ZADD', key('all'), number, id)
  if tonumber(redis.call('GET', key('number')) or 0) < tonumber(number) then
    redis.call('SET', key('number'), number)
  end
  if idempotency_key ~= '' then
    redis.call('HSETNX', key('keys'), idempotency_key, id)
  end
  enter_line({id = id, spider = spider, priority = ARGV[5], number = number})
end
local job = find(id)
if not job or is_over(job) then
  return is_new
end
local is_being_fed = status == 'running' and lease ~= ''
local is_fed = status == 'running' and lease == ''
local is_held = redis.call('HEXISTS', key('held'), spider) == 1
if job.status == 'pending' and not job.lapses and (is_fed or is_being_fed and not is_held) then
  leave_line(job)
  count_running(job, 1)
  redis.call('HSET', job.key, 'status', 'running', 'runner', runner, 'started', started)
  if is_being_fed then
    hold(job, now_ms() + lease)
  end
  job = find(id)
end
if is_fed and job.status == 'running' then
  await_end(job)
  if problem ~= '' then
    redis.call('HSET', job.key, 'problem', problem)
  end
  job = find(id)
end
if status ~= 'pending' and status ~= 'running' then
  if runner ~= '' then
    redis.call('HSET', job.key, 'runner', runner, 'started', started)
  end
  end_as(job, status, problem, ARGV[15])
elseif ARGV[10] == '1' then
  redis.call('HSET', job.key, 'cancel', 1)
end
set_head(spider)
return is_new
