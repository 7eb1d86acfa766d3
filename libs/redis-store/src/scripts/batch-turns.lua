-- batch-turns: takes, releases and hand-overs, whatever else the batch does. Stands at the end of everything(), which the
-- batch script calls when the first entry comes that is not one of the common cases: until then nothing of it is built.
changed, traces, ids, own_news, pushes = {}, {}, {}, {}, {}
write_pending = write_lines

-- The line of an entry; of one that failed, alone and without effect, why. `announced` is how many payloads there were.
local function outcome(ok, line, announced)
  if ok then return line end
  for i = #payloads, announced + 1, -1 do payloads[i] = nil end
  return '!' .. string.gsub(tostring(type(line) == 'table' and line.err or line), '%s+', ' ')
end

-- Applies the entry at `at`; returns its line and where the next one begins.
return function(k, at, letter, rest, next_check)
  local ok, line, after = true, nil, at + 1
  if letter > 90 then letter = letter - 32 end
  local gap, announced = find(rest, ' ', 1, true), #payloads
  if letter == 84 then -- T
    ok, line = pcall(take, k, rest)
  elseif letter == 73 then -- I
    ok, line = pcall(take, k, rest, ARGV[6 + count + next_check])
  elseif letter == 82 then -- R
    ok, line = pcall(release, k, rest, '0-')
  elseif letter == 78 then -- N
    ok, line = pcall(release, k, sub(rest, 1, gap - 1), sub(rest, gap + 1))
  elseif letter == 67 or letter == 89 then -- C, Y
    after = at + 2
    ok, line = pcall(release, k, sub(rest, 1, gap - 1), sub(rest, gap + 1), ARGV[at + 1], letter == 89)
  elseif letter == 90 then -- Z
    local note, holder = match(rest, '^%d+ (%S+) (.*)$')
    ok, line = pcall(release, k, sub(rest, 1, gap - 1), note, nil, false, holder)
  else
    if not others then others = everything_else() end
    ok, line, after = others(k, at, letter, rest, next_check, gap)
  end
  return outcome(ok, line, announced), after
end
