import { useCallback, useEffect, useState } from 'preact/hooks'
import { read } from './http'

// useLate is what a text was when nobody typed any more.
export function useLate(text: string, ms = 150): string {
  const [late, set] = useState(text)
  useEffect(() => {
    if (text === late) return
    const timer = setTimeout(() => set(text), ms)
    return () => clearTimeout(timer)
  }, [text, late])
  return late
}

// useRead has one answer of the controller, and reads it again when it is told to.
export function useRead<A>(path: string) {
  const [answer, tell] = useState<A>()
  const [failed, fail] = useState<unknown>()
  const [turn, again] = useState(0)
  useEffect(() => {
    const end = new AbortController()
    read<A>(path, end.signal).then(
      (a) => (tell(a), fail(undefined)),
      (e) => end.signal.aborted || fail(e),
    )
    return () => end.abort()
  }, [path, turn])
  const load = useCallback(() => again((n) => n + 1), [])
  return { answer, failed, load }
}
