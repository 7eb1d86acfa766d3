-- grant-rule: who is granted a chat next. Not a transition of its own: release, commit, withdraw, nudge, take and
-- close-session end in it.
--
-- Invariants: I1, I3, I6. Dead and withdrawn tickets are skipped (T8); a ticket whose inbound id has been committed
-- meanwhile is dropped and its session told so (Z3).

-- What other sessions were granted (fence and chat in turn), which tickets of this session joined a line (field and value
-- in turn, and by ticket), and which of any session left theirs: written for each session at once, at the end or before a
-- transition that reads it. A list that gets long is written before: one command takes only so much.
local LONG = 1000
local granted_to, left_line, joined, joining = {}, {}, {}, {}
local function write_lines()
  if #joined > 0 then call('HSET', base .. 'w:' .. session, unpack(joined)) end
  for of, list in pairs(granted_to) do call('HSET', base .. 'h:' .. of, unpack(list)) end
  for of, list in pairs(left_line) do call('HDEL', base .. 'w:' .. of, unpack(list)) end
  granted_to, left_line, joined, joining = {}, {}, {}, {}
end

-- Milliseconds that a session still lives, asked once each; <= 0 if it is dead.
local lives = {}
local function life_ms(of)
  if of == session then return own_life end
  local left = lives[of]
  if not left then
    left = call('PTTL', base .. 's:' .. of)
    lives[of] = left
  end
  return left
end

-- Queues a line for a session: in this reply if it is the caller's, else through its channel (Z1).
local function tell(of, line)
  if of == session then
    own_news[#own_news + 1] = line
  elseif pushes[of] then
    pushes[of][#pushes[of] + 1] = line
  else
    pushes[of] = { line }
  end
end

local function session_of(ticket)
  return match(ticket, '^(.*):')
end

-- Takes a record apart: fence, ticket, flags.
local function parse(record)
  return match(record, '^(%d+) ([^|]+)|?(.*)$')
end

-- The k-th entry's record, changes of this batch included; false if nobody holds the chat.
local function record_of(k, chat)
  local record = changed[chat]
  if record == nil then record = recorded[k + 1] end
  return record
end

-- The trace of a chat, changes of this batch included; nil if there is none.
local function trace_of(chat)
  return traces[chat] or call('HGET', window, chat) or has_old() and call('HGET', old_window, chat) or nil
end

-- What is stored about a committed id or a receipt, or nil.
local function stamp_of(field)
  local stamp = ids[field] or call('HGET', window, field) or has_old() and call('HGET', old_window, field)
  return stamp and is_fresh(stamp) and stamp or nil
end

-- Revision of the chat's row for a grant; '' if it has none. Looked up only if the trace says that it may.
local function revision_of(chat, trace)
  if trace and not find(trace, 'P ', 1, true) then return match(trace, '^%d+ %d+S(%S+)') or '' end
  local row = call('HMGET', base .. 'c:' .. chat, 'r', 'x')
  if not row[1] or (row[2] and row[2] ~= 'P' and (tonumber(row[2]) or math.huge) <= now_ms) then return '' end
  return told_revision(row[1])
end

-- What replies say in the place of a trace that is gone: that there is a row, if there is one.
local function cold_trace(chat)
  return call('EXISTS', base .. 'c:' .. chat) == 1 and '0 0P ' or ''
end

-- Grants `chat` to `ticket` of session `of`.
-- Returns what replies tell: '<fence> <revision>|<trace>', the trace being '<last fence> <note> <previous holder>'.
local function grant(chat, ticket, of, trace, flags)
  local revision = revision_of(chat, trace)
  local fence = next_fence(trace)
  changed[chat] = fence .. ' ' .. ticket .. flags
  if of == session then
    held[held_n + 1], held[held_n + 2] = fence, chat
    held_n = held_n + 2
  else
    local list = granted_to[of]
    if list then
      list[#list + 1], list[#list + 2] = fence, chat
      if #list > LONG then write_lines() end
    else
      granted_to[of] = { fence, chat }
    end
  end
  return fence .. ' ' .. revision .. '|' .. (trace or cold_trace(chat))
end

-- Grants the first live ticket in line, flagged as if there were others: whoever ends that turn looks;
-- or leaves the chat to nobody. The caller has dealt with the last grant.
local function grant_next(chat)
  local queue = base .. 'q:' .. chat
  while true do
    local entry = call('LPOP', queue)
    if not entry then
      changed[chat] = false
      return
    end
    local gap = find(entry, ' ', 1, true)
    local ticket, id = sub(entry, 1, gap - 1), sub(entry, gap + 1)
    local of = session_of(ticket)
    local left = left_line[of]
    if left then left[#left + 1] = ticket else left_line[of] = { ticket } end
    if left and #left > LONG then write_lines() end
    -- T8: a ticket of a dead session is skipped; one that was withdrawn is not in line.
    if life_ms(of) > 0 then
      if id ~= '' and stamp_of(chat .. ' ' .. id) then
        tell(of, 'd' .. ticket .. ' ' .. chat)
      else
        tell(of, 'g' .. ticket .. ' ' .. grant(chat, ticket, of, trace_of(chat), '|W') .. '|' .. chat)
        return
      end
    end
  end
end

-- Ends the grant `fence` of session `of`: its index forgets it. `trace` is what the chat remembers of it.
local function end_grant(chat, fence, of, trace)
  if of == session then
    let_go_n = let_go_n + 1
    let_go[let_go_n] = fence
  else
    call('HDEL', base .. 'h:' .. of, fence)
  end
  traces[chat] = trace
end

-- The note that a chat's trace goes on with when its holder did not write one.
local function note_of(chat, flags)
  local trace = trace_of(chat)
  local note = trace and match(trace, '^%d+ (%S+)') or '0P'
  return find(flags, 'P', 1, true) and match(note, '^%d+') .. 'P' or note
end

-- If the holder's session is dead its turn ends and the next ticket is granted. Returns the record, or false.
local function settle(chat, record)
  if record then
    local fence, ticket, flags = parse(record)
    local of = session_of(ticket)
    if life_ms(of) > 0 then return record end
    end_grant(chat, fence, of, fence .. ' ' .. note_of(chat, flags) .. ' ' .. of)
  end
  grant_next(chat)
  return changed[chat]
end

-- Sets a flag of a chat's record.
local function flag_record(chat, record, flag)
  local bar = find(record, '|', 1, true)
  if not bar then
    changed[chat] = record .. '|' .. flag
  elseif not find(record, flag, bar, true) then
    changed[chat] = record .. flag
  end
end
