-- lock: fenced locks with a time to live (S2), those of one tick in one call.
--
-- KEYS  1 holders (the floor of fences)
-- ARGV  1 base; then for each entry, in the order in which they were made:
--       'acquire', 'renew' or 'release', kind and name, token, ttlMs
-- Reply an array with, for acquire: the fence as text, or false if somebody holds it; for renew and release: 1, or 0 if
--       the token does not hold it
-- Invariants: I6: fences come from the shard's hybrid clock, so they grow after expiry and loss too.
local call = redis.call
local base = ARGV[1] .. 'lock:'
local replies, count, floor, fence = {}, 0, nil, nil
for at = 2, #ARGV, 4 do
  local what, key, token = ARGV[at], base .. ARGV[at + 1], ARGV[at + 2]
  local reply = false
  if what == 'acquire' then
    if call('SET', key, token, 'NX', 'PX', ARGV[at + 3]) then
      if floor then
        floor = floor + 1
      else
        local clock = call('TIME')
        local now_us = clock[1] * 1000000 + clock[2]
        floor = (tonumber(call('HGET', KEYS[1], ' floor') or 0) or 0) + 1
        if floor < now_us then floor = now_us end
      end
      fence = string.format('%.0f', floor)
      reply = fence
    end
  elseif call('GET', key) ~= token then
    reply = 0
  else
    if what == 'renew' then call('PEXPIRE', key, ARGV[at + 3]) else call('DEL', key) end
    reply = 1
  end
  count = count + 1
  replies[count] = reply
end
if fence then call('HSET', KEYS[1], ' floor', fence) end
return replies
