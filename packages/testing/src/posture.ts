/** The posture of a worker that is confined as it should be. */
export function soundPosture() {
  return {
    runtime: 'node 24',
    uid: 1000,
    gid: 1000,
    groups: [],
    capabilities: { inheritable: '0', permitted: '0', effective: '0', bounding: '0', ambient: '0' },
    noNewPrivs: true,
    seccomp: 2,
    interfaces: ['lo'],
    routes: [],
    rootReadOnly: true,
    mounts: [],
    environment: ['PATH'],
    namespaces: [],
  }
}
