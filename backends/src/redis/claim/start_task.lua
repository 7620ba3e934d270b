-- ARGV: worker, maximum starts, task, its priority. If a more urgent task of the same spider waits, in any of its
-- crawls, this worker holds that one; otherwise continues like start.lua, whose text follows. Returns for the urgent
-- one: crawl id, attempts, starts, the time since when it has waited, then key, lane, depth, deadline, referrer,
-- until and payload like sweep.lua.
local priority = tonumber(table.remove(ARGV))

-- Maximum number of entries that no longer wait and are removed: the rest follows when the next task is about to
-- begin.
local MOST_STALE = 16

-- Whether a listed task may be held now. In a pause its record becomes like one that was claimed (claim.lua): the
-- sweep sends it again after the pause, and then it is listed anew.
local function may_begin(pending, crawl, task, record)
  local status = redis.call('HGET', crawl, 'status')
  if status == 'paused' then
    let_go(record, NOW)
    redis.call('HSET', pending, task, format(record))
  end
  return status == 'running' and not is_unsure(crawl) and room_in(crawl) ~= 0
end

local function hold(pending, crawl, id, task, record)
  local since, payload = record.since, redis.call('HGET', recipes_of(pending), task)
  record.state, record.since, record.holder = 'h', now_ms(), ARGV[1]
  redis.call('HSET', pending, task, format(record))
  local deadline = record.deadline and int(record.deadline + idle_of(crawl)) or '-'
  return {
    id, int(record.attempts), int(record.starts), int(since), task, record.lane, int(record.depth), deadline, record.referrer, '-',
    payload or '',
  }
end

-- For a listed task: the reply if it was held, false if it may not begin, nil if it does not wait more urgently
-- than the task that is about to begin.
local function look_at(member, is_more_urgent)
  local id, task, record, pending = listed(URGENT, member)
  if not record then
    return false
  elseif not is_more_urgent then
    return nil
  end
  local crawl = key_beside(pending, 'crawl')
  return may_begin(pending, crawl, task, record) and hold(pending, crawl, id, task, record)
end

for _ = 1, MOST_STALE do
  local first = redis.call('ZRANGE', URGENT, 0, 0, 'WITHSCORES')
  local more = first[1] and -tonumber(first[2]) - priority or -1
  if more < 0 then
    break
  end
  -- Keys of another crawl may hold values that trawl did not write: they do not delay tasks of this crawl.
  local is_sound, held = pcall(look_at, first[1], more > 0)
  if is_sound and held == nil then
    break
  end
  redis.call('ZREM', URGENT, first[1])
  if is_sound and held then
    return held
  end
end
