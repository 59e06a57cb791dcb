export const mostWaiting = 4 << 20 // bytes that wait to be drawn

// Backlog is output on its way to a terminal, which takes one piece at a time. A
// browser reads a connection whether or not what it read is shown: of a command that
// writes faster than can be drawn the oldest goes, which would scroll away anyway.
export class Backlog {
  private waiting: Uint8Array[] = []
  private bytes = 0
  private dropped = 0
  private busy = false

  constructor(private write: (piece: string | Uint8Array, done: () => void) => void) {}

  add(bytes: Uint8Array): void {
    this.waiting.push(bytes)
    this.bytes += bytes.length
    while (this.bytes > mostWaiting) {
      const oldest = this.waiting.shift()!
      this.bytes -= oldest.length
      this.dropped += oldest.length
    }
    this.next()
  }

  private next = (): void => {
    if (this.busy || this.waiting.length === 0) return
    this.busy = true
    const drawn = () => {
      this.busy = false
      this.next()
    }
    if (this.dropped > 0) {
      // The first character ends a sequence that was cut.
      const said = `\x18\r\n[${this.dropped} bytes are not shown: they came faster than they could be drawn]\r\n`
      this.dropped = 0
      return this.write(said, drawn)
    }
    const piece = this.waiting.shift()!
    this.bytes -= piece.length
    this.write(piece, drawn)
  }
}
