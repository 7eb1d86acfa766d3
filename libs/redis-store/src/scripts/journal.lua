-- journal: failed attempts, look-ups and settled sends.
--
-- Entry 'B<fence>', id, error (escaped), ms of back-off or '', 'u' or ''
--                                                     a failed attempt of the record; '' gives it up: dead letter;
--                                                     u: whatever fence is known (a record that cannot be read).
--                                                     Reply 'B', or 'b' if a higher fence is known
--       'Q<id>'   a record, or '' for the oldest. Reply 'Qj' announcing its four values, or 'QJ' for none
--       'V<key>', status, entry's JSON, its hash       what became of a send, if its entry is still there. Reply 'V'
-- Invariants: I5 (a failure is counted under the highest fence only); 'sent' is never replaced.

local function fail_record(k, fence, at)
  local chat, id = ARGV[6 + k], ARGV[at]
  if ARGV[at + 3] ~= 'u' then
    if fence_known(chat, k) > tonumber(fence) then return 'b' end
    raise_fence(k, fence)
  end
  local records = base .. 'j:' .. chat
  local record = call('HMGET', records, id, id .. ' a')
  -- A record whose content is missing would block its chat for ever: an empty one can be given up.
  if not record[1] and (ARGV[at + 2] ~= '' or call('LINDEX', base .. 'jq:' .. chat, 0) ~= id) then return 'B' end
  local attempts = (tonumber(match(record[2] or '0', '^%d+')) or 0) + 1
  if ARGV[at + 2] ~= '' then
    local due = format('%.0f', now_ms + tonumber(ARGV[at + 2]))
    call('HSET', records, id .. ' a', attempts .. ' ' .. due, id .. ' e', ARGV[at + 1])
    if call('LINDEX', base .. 'jq:' .. chat, 0) == id then call('ZADD', base .. 'due', due, chat) end
    return 'B'
  end
  call('HSET', base .. 'dead-letters', chat .. ' ' .. id, attempts .. ' ' .. ARGV[at + 1] .. ' ' .. (record[1] or ''))
  call('ZADD', base .. 'dead', format('%.0f', now_ms), chat .. ' ' .. id)
  call('HDEL', records, id, id .. ' a', id .. ' e')
  call('LREM', base .. 'jq:' .. chat, 1, id)
  remaining(chat)
  return 'B'
end

local function find_record(k, id)
  local chat = ARGV[6 + k]
  if id == '' then return 'Q' .. read_oldest(chat) end
  local record = call('HMGET', base .. 'j:' .. chat, id, id .. ' a', id .. ' e')
  if not record[1] then
    local kept = call('HGET', base .. 'c:' .. chat, 'k')
    if not kept or sub(kept, 1, #id + 1) ~= id .. ' ' then return 'QJ' end
    record = { sub(kept, #id + 2), false, false }
  end
  local n = #payloads
  payloads[n + 1], payloads[n + 2], payloads[n + 3], payloads[n + 4] = id, record[1], attempts_of(record[2]), record[3] or ''
  return 'Qj'
end

-- The sender read the entry, changed its JSON, and says which hash it was of; 'sent' is a fact from any fence.
local function settle_send(k, key, at)
  local outbox = base .. 'o:' .. ARGV[6 + k]
  local known = call('HGET', outbox, key)
  if known and (ARGV[at] == 'sent' or sub(known, 1, 5) ~= 'sent ') and match(known, '^%a+ (%S*)') == ARGV[at + 2] then
    call('HSET', outbox, key, ARGV[at] .. ' ' .. ARGV[at + 2] .. ' ' .. ARGV[at + 1])
  end
  return 'V'
end
