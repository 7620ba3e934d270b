-- KEYS: jobs. ARGV: the prefix of each job's key, the maximum number of running jobs of a spider; then the
-- arguments of each script.
--
-- jobs               sorted set: the queue. `<number> <id>` of each pending job, by priority, the highest first
-- {jobs}:of:<spider> sorted set: the entries of one spider in it
-- {jobs}:ready       the first of each spider that can run one; {jobs}:heads hash: spider -> its entry there
-- {jobs}:held        hash: spider -> the job that is being fed, or was put back because the spider was busy
-- {jobs}:leases      sorted set: these jobs, by the end of their leases
-- {jobs}:running     hash: spider -> number of its running jobs
-- {jobs}:fed         sorted set: jobs that wait for the end of their crawls, by the time of the last check
-- {jobs}:ended       sorted set: jobs that are over, by the time of their end
-- {jobs}:all         sorted set: all jobs, by their number; {jobs}:number counts them
-- {jobs}:keys        hash: idempotency key -> job
--
-- Each transition is a function of common/src/jobs/transitions.rs.
local LINE, PREFIX, PER_SPIDER = KEYS[1], ARGV[1], tonumber(ARGV[2])

local function key(name)
  return '{' .. LINE .. '}:' .. name
end

local function int(number)
  return string.format('%.0f', number)
end

local function now_ms()
  return math.floor(now_us() / 1000)
end

-- The fields that are needed to change a job; nil if there is none, or if it cannot be read.
local function find(id)
  local job = redis.pcall('HMGET', PREFIX .. id, 'status', 'spider', 'number', 'priority', 'runner', 'until', 'cancel')
  if job.err or not (job[1] and job[2] and tonumber(job[3]) and tonumber(job[4])) then
    return nil
  end
  return {
    id = id, key = PREFIX .. id, status = job[1], spider = job[2], number = job[3], priority = job[4],
    runner = job[5], lapses = job[6], cancel = job[7],
  }
end

-- All fields of a job, for readers; no fields if there is none, and a text if its key holds something else.
local function fields_of(id)
  local fields = redis.pcall('HGETALL', PREFIX .. id)
  return fields.err or fields
end

local function is_over(job)
  return job.status ~= 'pending' and job.status ~= 'running'
end

-- Whether `runner` feeds it.
local function is_fed_by(job, runner)
  return job.status == 'running' and job.lapses and job.runner == runner
end

local function entry(job)
  return string.format('%016.0f ', job.number) .. job.id
end

local function id_of(entry)
  return string.sub(entry, 18)
end

-- Updates the next job that a spider can run; called after each change of one of its jobs.
local function set_head(spider)
  local before, head = redis.call('HGET', key('heads'), spider), {}
  local running = tonumber(redis.call('HGET', key('running'), spider) or 0)
  if running < PER_SPIDER and redis.call('HEXISTS', key('held'), spider) == 0 then
    head = redis.call('ZRANGE', key('of:' .. spider), 0, 0, 'WITHSCORES')
  end
  if before and before ~= head[1] then
    redis.call('ZREM', key('ready'), before)
    redis.call('HDEL', key('heads'), spider)
  end
  if head[1] then
    redis.call('ZADD', key('ready'), head[2], head[1])
    redis.call('HSET', key('heads'), spider, head[1])
  end
end

-- The smallest score comes first, so the score is the negative priority.
local function enter_line(job)
  local score = string.match(job.priority, '^-(.*)$') or '-' .. job.priority
  redis.call('ZADD', LINE, score, entry(job))
  redis.call('ZADD', key('of:' .. job.spider), score, entry(job))
end

local function leave_line(job)
  redis.call('ZREM', LINE, entry(job))
  redis.call('ZREM', key('of:' .. job.spider), entry(job))
end

local function hold(job, lapses)
  redis.call('HSET', job.key, 'until', int(lapses))
  redis.call('HSET', key('held'), job.spider, job.id)
  redis.call('ZADD', key('leases'), int(lapses), job.id)
end

local function let_go(job)
  if job.lapses then
    redis.call('HDEL', job.key, 'until')
    redis.call('HDEL', key('held'), job.spider)
    redis.call('ZREM', key('leases'), job.id)
  end
end

local function count_running(job, change)
  if redis.call('HINCRBY', key('running'), job.spider, change) <= 0 then
    redis.call('HDEL', key('running'), job.spider)
  end
end

local function await_end(job)
  let_go(job)
  redis.call('ZADD', key('fed'), 0, job.id)
end

-- Its feeder gives it up, or the time for which it was put back is over: nobody takes it before `not_before`, if
-- given.
local function give_up(job, not_before)
  if job.status == 'running' and job.cancel then
    await_end(job)
  else
    let_go(job)
    if job.status == 'running' then
      redis.call('HSET', job.key, 'status', 'pending')
      redis.call('HDEL', job.key, 'runner', 'started')
      count_running(job, -1)
      enter_line(job)
    end
    if not_before then
      hold(job, not_before)
    end
  end
  set_head(job.spider)
end

local function end_as(job, status, problem, now)
  if job.status == 'pending' then
    leave_line(job)
  else
    count_running(job, -1)
    redis.call('ZREM', key('fed'), job.id)
  end
  let_go(job)
  redis.call('HDEL', job.key, 'cancel', 'problem')
  redis.call('HSET', job.key, 'status', status, 'ended', int(now))
  if problem ~= '' then
    redis.call('HSET', job.key, 'problem', problem)
  end
  redis.call('ZADD', key('ended'), int(now), job.id)
  set_head(job.spider)
end
