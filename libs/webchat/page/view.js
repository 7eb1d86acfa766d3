// Draws the conversation. Everything that came from elsewhere becomes text nodes or checked attributes, never
// markup. Each message is drawn once: by its id, and the visitor's own by the id the page gave it.
import { sizeText, texts } from './texts.js'

const TYPING_MS = 10_000

export class View {
  /** @param onChoose called with (text, buttonId) when a button or a row is chosen. */
  constructor(onChoose) {
    this.onChoose = onChoose
    this.messages = document.getElementById('messages')
    this.list = this.messages.querySelector('ol')
    this.typingLine = document.getElementById('typing')
    this.connection = document.getElementById('connection')
    this.drawn = new Map()
    this.following = true
    this.messages.addEventListener('scroll', () => {
      const { scrollHeight, scrollTop, clientHeight } = this.messages
      this.following = scrollHeight - scrollTop - clientHeight < 80
    })
  }

  state(name) {
    this.connection.dataset.state = name
    this.connection.textContent = texts[name]
  }

  /** An entry of the log: the bot's, or one of the visitor's (also from another tab). */
  message(entry) {
    const mine = entry.from === 'visitor'
    const key = mine ? cidOf(entry.id) : entry.id
    const known = this.drawn.get(key)
    if (known !== undefined) return this.place(known)
    if (!mine) this.typing(false)
    this.place(this.draw(key, entry, mine ? 'sent' : undefined))
  }

  // The log decides the order: what was drawn while pending moves to where its entry stands, once.
  place(item) {
    if (item.dataset.placed) return
    item.dataset.placed = 'yes'
    if (item !== this.list.lastElementChild) this.list.append(item)
    this.scroll()
  }

  // Follows the conversation unless the visitor has scrolled up to read.
  scroll(always = false) {
    if (always) this.following = true
    if (this.following) this.messages.scrollTop = this.messages.scrollHeight
  }

  /** What the visitor just wrote. */
  pending(entry) {
    if (this.drawn.has(entry.cid)) return
    const file = entry.file && { name: entry.name, sizeBytes: entry.size }
    this.draw(entry.cid, { from: 'visitor', text: entry.text, file, at: entry.at }, 'pending')
  }

  failed(cid, { reason, maxBytes }) {
    const state = reason?.startsWith('file') ? reason : 'failed'
    this.note(cid, state, { failed: true, limit: maxBytes === undefined ? '' : sizeText(maxBytes) })
  }

  progress(cid, part) {
    this.note(cid, 'pending', { more: ` ${Math.floor(part * 100)} %` })
  }

  note(cid, state, { failed = false, limit = '', more = '' } = {}) {
    const item = this.drawn.get(cid)
    if (item === undefined) return
    item.classList.toggle('failed', failed)
    const note = item.querySelector('.note')
    // A refusal comes without anything being added to the list: it has to be announced by itself.
    if (failed) note.setAttribute('role', 'alert')
    note.textContent = texts[state].replace('{limit}', limit) + more
  }

  typing(on) {
    clearTimeout(this.typingTimer)
    this.typingLine.textContent = on ? texts.typing : ''
    if (on) this.typingTimer = setTimeout(() => this.typing(false), TYPING_MS)
  }

  draw(key, entry, state) {
    const item = element('li', entry.from === 'visitor' ? 'visitor' : 'bot')
    const bubble = element('div', 'bubble')
    bubble.append(element('span', 'visually-hidden', `${entry.from === 'visitor' ? texts.me : texts.bot}: `))
    if (entry.media) bubble.append(drawMedia(entry.media))
    // A file that the visitor sent is named, never shown or linked: its content stays with the server.
    if (entry.file) bubble.append(`${texts.fileSent}: ${entry.file.name} (${sizeText(entry.file.sizeBytes)})`)
    if (entry.text) bubble.append(...linked(entry.text))
    item.append(bubble)
    if (entry.buttons?.length || entry.list) item.append(this.drawChoices(entry))
    item.append(element('span', 'note', state === undefined ? clock(entry.at) : texts[state]))
    this.drawn.set(key, item)
    this.list.append(item)
    this.scroll(state === 'pending')
    return item
  }

  drawChoices(entry) {
    const group = element('div', 'choices')
    group.setAttribute('role', 'group')
    group.setAttribute('aria-label', texts.choices)
    const button = (id, text, description) => {
      const one = element('button', '', text)
      one.type = 'button'
      if (description) one.append(element('small', '', description))
      one.onclick = () => {
        // A double click is one answer.
        for (const each of group.querySelectorAll('button')) each.disabled = true
        this.onChoose(text, id)
      }
      return one
    }
    for (const { id, text } of entry.buttons ?? []) group.append(button(id, text))
    if (entry.list) {
      const details = element('details')
      details.append(element('summary', '', entry.list.button))
      for (const section of entry.list.sections) {
        const fieldset = element('fieldset')
        if (section.title) fieldset.append(element('legend', '', section.title))
        for (const row of section.rows) fieldset.append(button(row.id, row.title, row.description))
        details.append(fieldset)
      }
      group.append(details)
    }
    return group
  }
}

function drawMedia({ kind, url, fileName, caption }) {
  const figure = element('figure')
  figure.style.margin = '0'
  const safe = /^(https?:|data:)/i.test(url) ? url : ''
  if (kind === 'image' || kind === 'sticker') {
    const image = element('img')
    image.src = safe
    image.alt = caption ?? fileName ?? ''
    figure.append(image)
  } else if (kind === 'audio' || kind === 'video') {
    const player = element(kind)
    player.src = safe
    player.controls = true
    figure.append(player)
  } else {
    const link = element('a', '', fileName ?? texts.file)
    link.href = safe
    link.download = fileName ?? ''
    link.rel = 'noopener noreferrer'
    link.target = '_blank'
    figure.append(link)
  }
  if (caption) figure.append(element('figcaption', '', caption))
  return figure
}

/** Text with its web addresses as links. */
function linked(text) {
  return text.split(/(https?:\/\/[^\s<>"]+)/).map((part, index) => {
    if (index % 2 === 0) return document.createTextNode(part)
    const link = element('a', '', part)
    link.href = part
    link.rel = 'noopener noreferrer'
    link.target = '_blank'
    return link
  })
}

function element(name, className, text) {
  const made = document.createElement(name)
  if (className) made.className = className
  if (text !== undefined) made.textContent = text
  return made
}

function clock(at) {
  return new Date(at).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' })
}

/** The visitor's entries are named `<visitor>.<cid>`. */
function cidOf(id) {
  return id.slice(id.indexOf('.') + 1)
}
