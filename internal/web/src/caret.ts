const token = /"(?:[^"\\\n]|\\.)*"?|[{}[\],]/g

// pathAt is the field of a JSON document that a place in its text belongs to, as
// request.docker.image. The document need not be whole: somebody types it.
export function pathAt(text: string, at: number): string {
  const open: { list: boolean; key?: string }[] = []
  for (const m of text.matchAll(token)) {
    if (m.index >= at) break
    const t = m[0]
    const here = open.at(-1)
    if (t === '{' || t === '[') open.push({ list: t === '[' })
    else if (t === '}' || t === ']') open.pop()
    else if (here && !here.list) {
      if (t === ',') here.key = undefined
      else here.key ??= t.replaceAll('"', '')
    }
  }
  return open.flatMap((o) => o.key ?? []).join('.')
}
