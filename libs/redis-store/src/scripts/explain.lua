-- explain: what a grant of this session is about, for a replica that does not know its fence (reconciliation).
--
-- Entry 'X<fence>'   Reply 'X<ticket> <fence> <revision>|<trace>|<chat>', or 'x' if the session does not hold it
-- Reads only.
-- Invariants: I10, of which it is the backend's half: a grant whose notice was lost is found by its fence.
local function explain(fence)
  local chat = call('HGET', base .. 'h:' .. session, fence)
  if not chat then return 'x' end
  local record = changed[chat]
  if record == nil then record = call('HGET', KEYS[1], chat) end
  if not record or find(record, fence .. ' ', 1, true) ~= 1 then
    call('HDEL', base .. 'h:' .. session, fence)
    return 'x'
  end
  local _, ticket = parse(record)
  local trace = trace_of(chat)
  return 'X' .. ticket .. ' ' .. fence .. ' ' .. revision_of(chat, trace) .. '|' .. (trace or cold_trace(chat)) .. '|' .. chat
end
