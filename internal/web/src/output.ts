import { pieces, plain, type Piece } from './ansi'

// Line is a line of a log, by its number from the beginning of what was read.
export interface Line {
  number: number
  pieces: Piece[]
  text: string
}

export const most = 50_000 // lines that are kept

// Output is what a program has printed, as lines. Bytes come in any cut.
export class Output {
  lines: Line[] = []
  dropped = 0 // lines at the beginning that are not kept any more
  private rest = ''
  private look = plain
  private decoder = new TextDecoder()

  add(bytes: Uint8Array): void {
    const parts = (this.rest + this.decoder.decode(bytes, { stream: true })).split('\n')
    this.rest = parts.pop()!.slice(-100_000) // a line without an end is no way to fill the memory
    for (const p of parts) this.push(p)
    const over = this.lines.length - most
    if (over > most / 10) {
      this.lines = this.lines.slice(over)
      this.dropped += over
    }
  }

  // end takes what came after the last line's end for a line.
  end(): void {
    if (this.rest) this.push(this.rest)
    this.rest = ''
  }

  private push(raw: string): void {
    const [list, look] = pieces(raw, this.look)
    this.look = look
    const number = this.dropped + this.lines.length + 1
    this.lines.push({ number, pieces: list, text: list.map((p) => p.text).join('') })
  }
}
