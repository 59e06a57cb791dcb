import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { read } from './http'
import { pace } from './stream'

const size = 50 // lines of a page: as many as a screen shows

// Pages is a long list of which only some pages are here: those that were in sight.
// Old ones stay until they are read again, so that nothing flickers.
export class Pages<T> {
  total = 0
  private pages = new Map<number, T[]>()
  private places = new Map<string, number>() // by key
  private fresh = new Set<number>()

  constructor(private key: (line: T) => string) {}

  at(i: number): T | undefined {
    return this.pages.get(Math.floor(i / size))?.[i % size]
  }

  // placeOf is where a line is; undefined: it is not here.
  placeOf(key: string): number | undefined {
    const i = this.places.get(key)
    return i !== undefined && this.has(i, key) ? i : undefined
  }

  private has(i: number, key: string): boolean {
    const line = this.at(i)
    return line !== undefined && this.key(line) === key
  }

  // here are the lines that have been read.
  get here(): T[] {
    return [...this.pages.keys()].sort((a, b) => a - b).flatMap((n) => this.pages.get(n)!)
  }

  // put replaces a line where it is; false: it is not here.
  put(line: T): boolean {
    const i = this.placeOf(this.key(line))
    if (i === undefined) return false
    this.pages.get(Math.floor(i / size))![i % size] = line
    return true
  }

  // take takes in what was read of a list of so many, from a place on.
  take(offset: number, lines: T[], total: number): void {
    this.total = total
    let n = 0
    do {
      const page = lines.slice(n * size, (n + 1) * size)
      this.pages.set(offset / size + n, page)
      this.fresh.add(offset / size + n)
      page.forEach((l, i) => this.places.set(this.key(l), offset + n * size + i))
    } while (++n * size < lines.length)
    for (const p of [...this.pages.keys()]) if (p * size >= total) this.pages.delete(p)
  }

  // stale says that all has to be read again where it comes in sight.
  stale(): void {
    this.fresh.clear()
  }

  // missing is what to read so that some lines are here as they are now: a place and
  // a number, of whole pages.
  missing(first: number, last: number): [number, number] | undefined {
    const end = Math.max(Math.ceil(Math.min(last, Math.max(this.total, 1)) / size), 1)
    const want: number[] = []
    for (let n = Math.min(Math.floor(first / size), end - 1); n < end; n++) if (!this.fresh.has(n)) want.push(n)
    return want.length ? [want[0]! * size, (want[want.length - 1]! - want[0]! + 1) * size] : undefined
  }
}

// Answer is a part of a list.
export interface Answer<T> {
  lines: T[]
  total: number
}

// usePages reads those pages of a list that are in sight, when they come there and
// when it is told to read again. What is asked for may change; until the first
// answer the old list stays.
export function usePages<T, A>(path: string, key: (line: T) => string, answer: (a: A) => Answer<T>, again: number) {
  const [shown, show] = useState(() => ({ pages: new Pages<T>(key), version: 0, loading: true, last: undefined as A | undefined, failed: undefined as unknown }))
  const sight = useRef<[number, number]>([0, 40])
  const reader = useMemo(() => {
    const pages = new Pages<T>(key)
    const ended = new AbortController()
    let busy = false
    let wanted = 0 // that somebody asked to read again
    let before = 0
    let asked = 0 // when it was read last
    let timer = 0
    let at = 0 // when it is over
    let first = 0 // when the first change came that no answer has
    let last = 0
    const load = async (old = 0) => {
      if (busy || ended.signal.aborted) return
      const want = pages.missing(...sight.current)
      if (!want) return
      busy = true
      asked = Date.now()
      const turn = wanted
      try {
        const a = await read<A>(`${path}&offset=${want[0]}&limit=${want[1]}` + (old ? `&maxAge=${old}` : ''), ended.signal)
        if (ended.signal.aborted) return
        const { lines, total } = answer(a)
        pages.take(want[0], lines, total)
        if (turn !== wanted) pages.stale()
        show((s) => ({ pages, version: s.version + 1, loading: false, last: a, failed: undefined }))
      } catch (failed) {
        if (ended.signal.aborted) return
        show((s) => ({ ...s, loading: false, failed }))
        busy = false
        return
      }
      busy = false
      void load()
    }
    // reload reads what is in sight again: at once, or late where what changed is drawn
    // already or nobody waits for it, and no more often than the controller says. A page that
    // nobody sees reads when it is seen again. An answer that is as old as the first change
    // which it has to have serves many pages; if others came since, it is read once more.
    const reload = (late = false) => {
      last = performance.now()
      first ||= last
      const wait = Math.max(before + pace.ms - Date.now(), late ? pace.ms : 20)
      if (timer && (late || at <= Date.now() + wait)) return
      clearTimeout(timer)
      at = Date.now() + wait
      timer = window.setTimeout(() => {
        timer = 0
        if (document.hidden) return
        before = Date.now()
        wanted++
        const age = Math.floor((performance.now() - first) / 1000)
        const more = age > 0 && last > first
        first = 0
        if (more) reload(true)
        pages.stale()
        void load(Math.min(age, 60))
      }, wait)
    }
    const poll = () => {
      if (document.hidden || Date.now() - asked < again - 1000) return
      pages.stale()
      void load(5)
    }
    const seen = () => document.hidden || !first || reload()
    document.addEventListener('visibilitychange', seen)
    const end = () => {
      document.removeEventListener('visibilitychange', seen)
      clearTimeout(timer)
      ended.abort()
    }
    return { pages, load, reload, poll, end }
  }, [path])
  useEffect(() => {
    sight.current = [0, 40]
    show((s) => ({ ...s, loading: true }))
    void reader.load()
    const timer = setInterval(reader.poll, again / 2) // one that was read for changes is not read for this as well
    return () => {
      clearInterval(timer)
      reader.end()
    }
  }, [reader])
  const see = (first: number, last: number) => {
    if (shown.pages !== reader.pages) return
    sight.current = [first, last]
    void reader.load()
  }
  const put = (line: T) => {
    const known = reader.pages.put(line)
    if (known) redraw(() => show((s) => ({ ...s, version: s.version + 1 })))
    return known
  }
  const redraw = useMemo(bundled, [])
  return { ...shown, see, put, reload: reader.reload }
}

// bundled draws a change at once, and at most ten times a second however many come.
function bundled(): (draw: () => void) => void {
  let timer = 0
  let before = 0
  return (draw) => {
    timer ||= window.setTimeout(
      () => {
        timer = 0
        before = Date.now()
        draw()
      },
      Math.max(before + 100 - Date.now(), 0),
    )
  }
}
