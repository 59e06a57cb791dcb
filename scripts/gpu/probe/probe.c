// probe uses the GPUs that a container sees, by the driver alone: it opens
// libcuda, names each device, writes to its memory and reads it back, and then
// keeps the first one busy for as many seconds as its argument says. Each line
// begins with what was done. Exit code: 0 all worked, 3 no driver library,
// 4 no GPU, 5 a call of the driver failed.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef int result;
typedef int device;
typedef void *context;
typedef unsigned long long pointer;

static void *lib;

// Where the loader does not find the library, it is one of the files that were
// mounted into the container.
static void *open_mounted(void) {
	char line[8192], path[4096];
	void *found = NULL;
	FILE *f = fopen("/proc/self/mountinfo", "r");
	while (f && !found && fgets(line, sizeof line, f))
		if (sscanf(line, "%*s %*s %*s %*s %4095s", path) == 1 && strstr(path, "/libcuda.so"))
			found = dlopen(path, RTLD_NOW);
	if (f)
		fclose(f);
	return found;
}

static void *symbol(const char *name) {
	char newer[128];
	snprintf(newer, sizeof newer, "%s_v2", name);
	void *p = dlsym(lib, newer);
	if (!p && !(p = dlsym(lib, name))) {
		printf("probe: the driver has no %s\n", name);
		exit(5);
	}
	return p;
}

static void must(const char *what, result r) {
	if (r == 0)
		return;
	const char *text = NULL;
	result (*name)(result, const char **) = dlsym(lib, "cuGetErrorName");
	if (name)
		name(r, &text);
	printf("probe: %s: %s (%d)\n", what, text ? text : "error", r);
	exit(r == 100 ? 4 : 5);
}

static void say_device(device d) {
	unsigned char u[16];
	char name[128] = "";
	result (*uuid)(void *, device) = symbol("cuDeviceGetUuid");
	result (*get_name)(char *, int, device) = symbol("cuDeviceGetName");
	must("cuDeviceGetUuid", uuid(u, d));
	must("cuDeviceGetName", get_name(name, sizeof name, d));
	printf("device %d GPU-", d);
	for (int i = 0; i < 16; i++)
		printf(i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", u[i]);
	printf(" %s\n", name);
}

// use writes a pattern to device memory, reads it back, and goes on writing.
static void use(device d, int seconds) {
	enum { bytes = 256 << 20 };
	context c;
	pointer p;
	unsigned back[4] = {0};
	result (*create)(context *, unsigned, device) = symbol("cuCtxCreate");
	result (*alloc)(pointer *, size_t) = symbol("cuMemAlloc");
	result (*set)(pointer, unsigned, size_t) = symbol("cuMemsetD32");
	result (*copy)(void *, pointer, size_t) = symbol("cuMemcpyDtoH");
	result (*sync)(void) = symbol("cuCtxSynchronize");
	must("cuCtxCreate", create(&c, 0, d));
	must("cuMemAlloc", alloc(&p, bytes));
	must("cuMemsetD32", set(p, 0x6a0b2e5u, bytes / 4));
	must("cuMemcpyDtoH", copy(back, p + bytes - sizeof back, sizeof back));
	if (back[0] != 0x6a0b2e5u || back[3] != 0x6a0b2e5u) {
		printf("probe: memory reads %x, not what was written\n", back[0]);
		exit(5);
	}
	printf("memory of device %d works\n", d);
	fflush(stdout);
	for (time_t end = time(NULL) + seconds; time(NULL) < end;) {
		for (int i = 0; i < 200; i++)
			must("cuMemsetD32", set(p, i, bytes / 4));
		must("cuCtxSynchronize", sync());
	}
	printf("busy for %d s\n", seconds);
}

int main(int argc, char **argv) {
	int count = 0;
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!(lib = dlopen("libcuda.so.1", RTLD_NOW)) && !(lib = open_mounted())) {
		printf("probe: no driver library: %s\n", dlerror());
		return 3;
	}
	result (*init)(unsigned) = symbol("cuInit");
	result (*get_count)(int *) = symbol("cuDeviceGetCount");
	result (*get)(device *, int) = symbol("cuDeviceGet");
	must("cuInit", init(0));
	must("cuDeviceGetCount", get_count(&count));
	printf("devices %d\n", count);
	for (int i = 0; i < count; i++) {
		device d;
		must("cuDeviceGet", get(&d, i));
		say_device(d);
	}
	if (count == 0)
		return 4;
	device first;
	must("cuDeviceGet", get(&first, 0));
	use(first, argc > 1 ? atoi(argv[1]) : 0);
	return 0;
}
