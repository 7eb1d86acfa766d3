-- dead-letters: lists records that were given up, puts one back, or discards it (D3).
--
-- KEYS  1 holders
-- ARGV  1 base  2 'list', 'retry' or 'discard'
--       list: 3 limit                          Reply { '<chat> <id>', ms, letter ... }, oldest first
--       retry, discard: 3 chat  4 id  5 windowMs  Reply 1, or 0 if there is no such dead letter
-- A letter is '<attempts> <error, escaped> <seq> <json>'. Invariants: a discarded id stays a duplicate; a record
-- that is put back takes its old place, before what arrived after it.
local call, match = redis.call, string.match
local base = ARGV[1]
if ARGV[2] == 'list' then
  local listed = {}
  local members = call('ZRANGE', base .. 'dead', 0, tonumber(ARGV[3]) - 1, 'WITHSCORES')
  for i = 1, #members, 2 do
    listed[#listed + 1] = members[i]
    listed[#listed + 1] = members[i + 1]
    listed[#listed + 1] = call('HGET', base .. 'dead-letters', members[i]) or ''
  end
  return listed
end
local chat, id = ARGV[3], ARGV[4]
local member = chat .. ' ' .. id
if call('ZREM', base .. 'dead', member) == 0 then return 0 end
local letter = call('HGET', base .. 'dead-letters', member) or ''
local clock = call('TIME')
local now_ms = math.floor(clock[1] * 1000 + clock[2] / 1000)
local record = match(letter, '^%d+ %S+ (%d+ .*)$')
if ARGV[2] == 'retry' and not record then
  -- Nothing that could be put back: it stays for a look, and to be discarded.
  call('ZADD', base .. 'dead', string.format('%.0f', now_ms), member)
  return 0
end
call('HDEL', base .. 'dead-letters', member)
if ARGV[2] == 'discard' then
  local window = base .. 't:' .. math.floor(now_ms / ARGV[5])
  call('HSET', window, member, string.format('%.0f', now_ms) .. ':0')
  return 1
end
local records, queue = base .. 'j:' .. chat, base .. 'jq:' .. chat
local seq = tonumber(match(record, '^%d+'))
local after
for _, other in ipairs(call('LRANGE', queue, 0, -1)) do
  local content = call('HGET', records, other)
  if content and tonumber(match(content, '^%d+')) > seq then
    after = other
    break
  end
end
call('HSET', records, id, record)
if after then call('LINSERT', queue, 'BEFORE', after, id) else call('RPUSH', queue, id) end
call('ZADD', base .. 'due', string.format('%.0f', now_ms), chat)
return 1
