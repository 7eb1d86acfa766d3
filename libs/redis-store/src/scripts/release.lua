-- release: the holder's turn ends, the first live ticket in line is granted.
--
-- Entry 'R<fence>'         the grant that ends, with the note '0-'
--       'N<fence> <note>'  with another note for the chat's trace
--       'C<fence> <note>'  the same, and the next argument is the '<chat> <inbound id>' that is committed with it
--       'Y<fence> <note>'  the same for a chat that has committed many: its oldest ids go
--       'Z<fence> <note> <holder>'  a turn under which nothing was done: the holder before it stays on record
-- Reply 'R' ended now
--       'r' this grant is not the current one: ended before, or lost; for 'C' followed by s (another holds the
--           chat) or a (nobody does)
--       'c' (for 'C') ended before, by this very commit
-- Idempotent by fence. Invariants: I1, I3, I5.

-- Keeps the committed ids of a chat that has very many within IDS_LIMIT: the oldest of those listed goes.
local function bound_ids(chat, field)
  local list = base .. 'l:' .. chat
  if call('RPUSH', list, field) > IDS_LIMIT then
    local oldest = call('LPOP', list)
    call('HDEL', window, oldest)
    call('HDEL', old_window, oldest)
  end
  call('PEXPIRE', list, format('%.0f', 2 * WINDOW_MS))
end

-- Ends the current grant of a chat and grants the next; `record` is the holder's.
local function hand_over(chat, record, fence, note, holder)
  local bar = find(record, '|', 1, true)
  if bar and find(record, 'P', bar, true) then note = match(note, '^%d+') .. 'P' end
  end_grant(chat, fence, session, fence .. ' ' .. note .. ' ' .. (holder or session))
  if bar and find(record, 'W', bar, true) then
    grant_next(chat)
  else
    changed[chat] = false
  end
end

-- Any release.
local function release(k, fence, note, field, many, holder)
  local chat = ARGV[6 + k]
  local record = record_of(k, chat)
  -- A dead session may still end its turn, but commits nothing.
  if not record or find(record, fence .. ' ', 1, true) ~= 1 or field and own_life <= 0 then
    if not field then return 'r' end
    local stamp = stamp_of(field)
    if stamp and match(stamp, '^%d+:(%d+)[^ ]*$') == fence then return 'c' end
    return record and 'rs' or 'ra'
  end
  if field then ids[field] = stamp_stem .. fence end
  if many then bound_ids(chat, field) end
  hand_over(chat, record, fence, note, holder)
  return 'R'
end
