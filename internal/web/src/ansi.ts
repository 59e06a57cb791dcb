// Piece is text of one look.
export interface Piece {
  text: string
  look: string // class names; empty: plain
}

// Look is what a terminal's escape sequences have set.
interface Look {
  fg: number // 0 to 15; -1: the terminal's own
  bold: boolean
  faint: boolean
  under: boolean
}

export const plain: Look = { fg: -1, bold: false, faint: false, under: false }

// Escape sequences: those that set colours, and others, which are left out with all
// that a terminal would not print. What is not finished at a line's end is dropped.
const sequence = /\x1b\[([0-9;:]*)m|\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\|$)|\x1b[ -/]*[0-~]|\x1b|[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f]/g

// pieces cuts a line into text of one look each, and says with what look the next
// line begins. Of what was printed over itself by carriage returns the last is kept.
export function pieces(line: string, look: Look): [Piece[], Look] {
  const out: Piece[] = []
  const add = (text: string) => {
    if (text) out.push({ text, look: classes(look) })
  }
  line = line.replace(/\r+$/, '')
  let at = 0
  for (const m of line.matchAll(sequence)) {
    add(line.slice(at, m.index))
    at = m.index + m[0].length
    if (m[1] !== undefined) look = changed(look, m[1])
  }
  add(line.slice(at))
  return [lastPrint(out), look]
}

function lastPrint(list: Piece[]): Piece[] {
  const i = list.findLastIndex((p) => p.text.includes('\r'))
  if (i < 0) return list
  const text = list[i]!.text
  return [{ ...list[i]!, text: text.slice(text.lastIndexOf('\r') + 1) }, ...list.slice(i + 1)].filter((p) => p.text)
}

function changed(look: Look, codes: string): Look {
  const next = { ...look }
  const list = codes.split(/[;:]/).map(Number)
  for (let i = 0; i < list.length; i++) {
    const c = list[i]!
    if (c === 0) Object.assign(next, plain)
    else if (c === 1) next.bold = true
    else if (c === 2) next.faint = true
    else if (c === 4) next.under = true
    else if (c === 22) next.bold = next.faint = false
    else if (c === 24) next.under = false
    else if (c >= 30 && c <= 37) next.fg = c - 30
    else if (c >= 90 && c <= 97) next.fg = c - 90 + 8
    else if (c === 39) next.fg = -1
    else if (c === 38 || c === 48) {
      const palette = list[i + 1] === 5
      if (c === 38) next.fg = palette && list[i + 2]! < 16 ? list[i + 2]! : -1
      i += palette ? 2 : 4
    }
  }
  return next
}

function classes(l: Look): string {
  return [l.fg >= 0 && 'fg' + l.fg, l.bold && 'bold', l.faint && 'faint', l.under && 'under'].filter(Boolean).join(' ')
}
