-- withdraw: a waiter gives up. If its ticket was granted meanwhile this ends that grant, which nobody has seen.
--
-- Entry 'W<n>'   Reply 'W'   Idempotent. Invariants: I1, I3, I8: the holder of every grant is recorded,
-- also of one that its replica never saw (which then trusts nothing that it remembers: the revisions tell).
local function withdraw(k, n)
  local chat, ticket = ARGV[6 + k], session .. ':' .. n
  local record = record_of(k, chat)
  if record then
    local fence, holder_ticket, flags = parse(record)
    if holder_ticket == ticket then
      end_grant(chat, fence, session, fence .. ' ' .. note_of(chat, flags) .. ' ' .. session)
      grant_next(chat)
      return 'W'
    end
  end
  local waiting = base .. 'w:' .. session
  local field = call('HGET', waiting, ticket)
  if field then
    call('HDEL', waiting, ticket)
    call('LREM', base .. 'q:' .. chat, 1, ticket .. ' ' .. sub(field, #chat + 2))
  end
  return 'W'
end
