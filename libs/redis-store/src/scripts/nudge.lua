-- nudge: the grant rule for a ticket that waits, perhaps behind a session that has died.
--
-- Entry 'U<n>'
-- Reply 'G...' it holds the chat; 'Q...' it waits; 'D' it was dropped, its inbound id being committed;
--       'X' there is no such ticket; 'L' the session is not alive
-- Idempotent. Invariants: I1, I3, I6.
local function nudge(k, n)
  if own_life <= 0 then return 'L' end
  local chat, ticket = ARGV[6 + k], session .. ':' .. n
  local record = record_of(k, chat)
  local known = #own_news
  local before = record
  record = settle(chat, record)
  if record then
    local fence, holder_ticket = parse(record)
    local of = session_of(holder_ticket)
    if holder_ticket == ticket then
      if record ~= before and own_news[#own_news] and #own_news > known then own_news[#own_news] = nil end
      local trace = trace_of(chat)
      return 'G' .. fence .. ' ' .. revision_of(chat, trace) .. '|' .. (trace or cold_trace(chat))
    end
    if call('HEXISTS', base .. 'w:' .. session, ticket) == 1 then return 'Q' .. life_ms(of) .. ' ' .. of end
  end
  for i = known + 1, #own_news do
    if own_news[i] == 'd' .. ticket .. ' ' .. chat then return 'D' end
  end
  call('HDEL', base .. 'w:' .. session, ticket)
  return 'X'
end
