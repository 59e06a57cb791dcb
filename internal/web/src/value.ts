import { useEffect, useState } from 'preact/hooks'

// Value is a value that is shown in several places: whoever watches it hears of
// each change.
export class Value<T> {
  private watchers = new Set<(v: T) => void>()

  constructor(private now: T) {}

  get(): T {
    return this.now
  }

  set(v: T): void {
    if (v === this.now) return
    this.now = v
    for (const tell of [...this.watchers]) tell(v)
  }

  watch(tell: (v: T) => void): () => void {
    this.watchers.add(tell)
    return () => this.watchers.delete(tell)
  }
}

// useValue is the value as it is now; the component is drawn again when it changes.
export function useValue<T>(value: Value<T>): T {
  const [, redraw] = useState(0)
  const drawn = value.get()
  useEffect(() => {
    const again = () => redraw((n) => n + 1)
    if (value.get() !== drawn) again() // it changed after it was drawn, before it was watched
    return value.watch(again)
  }, [value])
  return drawn
}
