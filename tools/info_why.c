// SPDX-License-Identifier: BSD-2-Clause
/*
 * Why an adapter does not open, and what to do about it. The library logs some causes; the others
 * follow from its return code and from what this host has.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common.h"
#include "info.h"

/* An adapter needs a few descriptors; with fewer than this left they are the likely cause. */
#define WHY_DESCRIPTORS 24u

void info_text_add(struct info_texts *texts, const char *format, ...)
{
	bool is_new = true;
	char *text = NULL;
	va_list args;
	int len;

	va_start(args, format);
	len = vasprintf(&text, format, args);
	va_end(args);
	if (len < 0)
		abort();
	for (unsigned i = 0; i < texts->count; i++)
		is_new &= strcmp(texts->texts[i], text) != 0;
	if (is_new && texts->count < INFO_TEXTS_MAX)
		texts->texts[texts->count++] = text;
	else
		free(text);
}

void info_texts_free(struct info_texts *texts)
{
	for (unsigned i = 0; i < texts->count; i++)
		free(texts->texts[i]);
	texts->count = 0;
}

/* --- interfaces --- */

/* Is the interface up, and has it an address that an adapter can use? */
static void why_interface_state(struct info_adapter *adapter, const char *interface)
{
	bool is_up = false, has_address = false;
	struct ifaddrs *list = NULL;

	if (getifaddrs(&list) != 0)
		return;
	for (const struct ifaddrs *entry = list; entry; entry = entry->ifa_next) {
		if (strcmp(entry->ifa_name, interface) != 0)
			continue;
		is_up |= (entry->ifa_flags & IFF_UP) != 0;
		has_address |= entry->ifa_addr && (entry->ifa_addr->sa_family == AF_INET ||
						   entry->ifa_addr->sa_family == AF_INET6);
	}
	freeifaddrs(list);
	if (!is_up || !has_address)
		info_texts_free(&adapter->reasons); /* that it is one or the other */
	if (!is_up) {
		info_text_add(&adapter->reasons, "the interface %s is down", interface);
		info_text_add(&adapter->advice, "activate it: ip link set %s up", interface);
	}
	if (!has_address) {
		info_text_add(&adapter->reasons, "the interface %s has no IP address", interface);
		info_text_add(&adapter->advice, "give it one: ip address add ADDRESS/PREFIX dev %s",
			      interface);
	}
}

/* Does any RDMA device belong to the interface? */
static bool why_has_device(const char *interface)
{
	DIR *devices = opendir("/sys/class/infiniband");
	const struct dirent *entry;
	bool is_found = false;

	while (devices && !is_found && (entry = readdir(devices))) {
		char path[600], name[IF_NAMESIZE + 1] = "";
		FILE *file;

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/sys/class/infiniband/%s/parent", entry->d_name);
		file = fopen(path, "r");
		if (file && fgets(name, sizeof(name), file))
			name[strcspn(name, "\n")] = '\0';
		if (file)
			fclose(file);
		snprintf(path, sizeof(path), "/sys/class/infiniband/%s/device/net/%s",
			 entry->d_name, interface);
		is_found = strcmp(name, interface) == 0 || access(path, F_OK) == 0;
	}
	if (devices)
		closedir(devices);
	return is_found;
}

/* The interface of an adapter: that of its name, or the first word of its instance data. */
static void why_interface(struct info_adapter *adapter, const char *interface, bool is_verbs)
{
	struct in6_addr address;

	if (interface[0] == '\0' || inet_pton(AF_INET, interface, &address) == 1 ||
	    inet_pton(AF_INET6, interface, &address) == 1)
		return;
	if (if_nametoindex(interface) == 0) {
		if (is_verbs && adapter->line)
			return; /* it may be the name of a device */
		info_texts_free(&adapter->reasons);
		info_text_add(&adapter->reasons, "this host has no interface %s", interface);
		info_text_add(&adapter->advice, "choose one of those that `ip link` lists");
		return;
	}
	why_interface_state(adapter, interface);
	if (is_verbs && !why_has_device(interface)) {
		info_texts_free(&adapter->reasons);
		info_text_add(&adapter->reasons, "no RDMA device belongs to the interface %s",
			      interface);
		info_text_add(&adapter->advice,
			      "look for devices with `rdma link`; a soft device needs no hardware: "
			      "rdma link add rxe0 type rxe netdev %s",
			      interface);
	}
}

/* --- libraries and files --- */

#define WHY_RIGHT_LIBRARY                                                                          \
	"correct the library in its line of dat.conf: libdat-soft.so.1 for an interface, "         \
	"libdat-verbs.so.1 for an RDMA device"

static void why_no_provider(struct info_adapter *adapter, const char *library)
{
	info_texts_free(&adapter->reasons); /* they say the same in the words of the registry */
	info_text_add(&adapter->reasons, "%s is no provider of uDAPL", library);
	info_text_add(&adapter->advice, WHY_RIGHT_LIBRARY);
}

/* Tries to load the provider library as libdat does. */
static bool why_library(struct info_adapter *adapter, const char *library)
{
	void *handle = dlopen(library, RTLD_LAZY | RTLD_LOCAL);
	const char *error;

	if (handle) {
		bool is_provider = dlsym(handle, "dat_provider_init") != NULL;

		dlclose(handle);
		if (is_provider)
			return true;
		why_no_provider(adapter, library);
		return false;
	}
	error = dlerror();
	info_texts_free(&adapter->reasons); /* they say the same */
	info_text_add(&adapter->reasons, "the provider library does not load: %s", error);
	if (strstr(error, "invalid ELF header") || strstr(error, "file too short")) {
		info_text_add(&adapter->advice, WHY_RIGHT_LIBRARY);
		return false;
	}
	if (registry_conf_is_reference(library)) {
		info_text_add(&adapter->advice,
			      "name in its line of dat.conf an RDMA device of this host, or an "
			      "interface that is up; OpenDAT serves it instead of %s, unless "
			      "DAT_OPENDAT_REPLACE=off",
			      library);
		return false;
	}
	info_text_add(&adapter->advice,
		      "install %s where the loader looks for it, or name its folder in "
		      "LD_LIBRARY_PATH",
		      library);
	return false;
}

/* The library of a built-in adapter, which libdat looks for in its own folder first. */
static bool why_builtin_library(struct info_adapter *adapter, const char *library)
{
	char path[4096];
	const char *end;
	Dl_info info;

	if (dladdr((void *)(uintptr_t)dat_strerror, &info) != 0 && info.dli_fname) {
		end = strrchr(info.dli_fname, '/');
		snprintf(path, sizeof(path), "%.*s%s", end ? (int)(end + 1 - info.dli_fname) : 0,
			 info.dli_fname, library);
		if (end && access(path, R_OK) == 0)
			return why_library(adapter, path);
	}
	return why_library(adapter, library);
}

/* The name is not known to the registry. */
static void why_no_name(struct info_adapter *adapter, const struct info_sources *sources)
{
	bool is_soft = strncmp(adapter->name, "soft-", 5) == 0;
	bool is_verbs = strncmp(adapter->name, "verbs-", 6) == 0;

	if (sources->file.is_override) {
		info_texts_free(&adapter->reasons);
		info_text_add(&adapter->reasons,
			      "%s, which DAT_OVERRIDE names, does not list it, and there are no "
			      "built-in adapters then",
			      sources->file.path);
		info_text_add(&adapter->advice, "add a line to %s, or unset DAT_OVERRIDE",
			      sources->file.path);
	} else if (is_soft || is_verbs) {
		if (why_builtin_library(adapter,
					is_soft ? "libdat-soft.so.1" : "libdat-verbs.so.1"))
			why_interface(adapter, strchr(adapter->name, '-') + 1, is_verbs);
	} else {
		/* the library says so, too, unless the user has chosen what it logs */
		if (adapter->reasons.count == 0)
			info_text_add(&adapter->reasons,
				      "no line of dat.conf and no built-in adapter has this name");
		info_text_add(&adapter->advice,
			      "choose one of those that `dat_info --list` prints, or add a line to "
			      "dat.conf");
	}
}

/* --- resources --- */

static bool why_descriptors(struct info_adapter *adapter)
{
	DIR *open_ones = opendir("/proc/self/fd");
	struct rlimit limit;
	unsigned count = 0;

	while (open_ones && readdir(open_ones))
		count++;
	if (open_ones)
		closedir(open_ones);
	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return false;
	/* a folder that cannot be read is a sign of it, too */
	if (open_ones && limit.rlim_cur >= count + WHY_DESCRIPTORS)
		return false;
	info_texts_free(&adapter->reasons);
	info_text_add(&adapter->reasons, "a process may open only %llu descriptors (ulimit -n)",
		      (unsigned long long)limit.rlim_cur);
	info_text_add(&adapter->advice, "raise the limit: ulimit -n 1024, or more");
	return true;
}

static void why_resources(struct info_adapter *adapter)
{
	bool is_verbs = strstr(adapter->library, "libdat-verbs") != NULL;
	const char *interface = strchr(adapter->name, '-');
	const char *percent;
	char word[64];

	if (why_descriptors(adapter))
		return;
	interface = adapter->line ? adapter->line->instance_data : interface ? interface + 1 : "";
	snprintf(word, sizeof(word), "%.*s", (int)strcspn(interface, " "), interface);
	percent = strchr(word, '%'); /* "fe80::1%eth0" */
	why_interface(adapter, percent ? percent + 1 : word, is_verbs);
}

/* Does the library object to a setting? Its message quotes the instance data. */
static bool why_setting(struct info_adapter *adapter)
{
	for (unsigned i = 0; i < adapter->reasons.count; i++) {
		if (!strstr(adapter->reasons.texts[i], "instance data"))
			continue;
		info_text_add(&adapter->advice,
			      "correct the setting, in the environment or in %s; opendat(7) lists "
			      "all settings and their values",
			      adapter->line ? "its line of dat.conf" : "dat.conf");
		return true;
	}
	return false;
}

void info_why(struct info_adapter *adapter, const struct info_sources *sources)
{
	switch (DAT_GET_TYPE(adapter->open_code)) {
	case DAT_SUCCESS:
		return;
	case DAT_PROVIDER_NOT_FOUND:
		if (adapter->line)
			why_library(adapter, adapter->line->library);
		else
			why_no_name(adapter, sources);
		break;
	default:
		if (!why_setting(adapter))
			why_resources(adapter);
		break;
	}
	info_advise(adapter);
	/* the last line of the log is a summary, which says no more than the others */
	if (adapter->reasons.count > 1)
		info_texts_drop(&adapter->reasons, ": cannot be opened: ");
	if (adapter->reasons.count == 0)
		info_text_add(&adapter->reasons, "the library gives no reason");
	if (adapter->advice.count == 0)
		info_text_add(&adapter->advice,
			      "see what the library does: DAT_DBG_TYPE=63 "
			      "dat_info --adapter %s",
			      adapter->name);
}
