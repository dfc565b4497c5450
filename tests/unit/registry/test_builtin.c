// SPDX-License-Identifier: BSD-2-Clause
/*
 * The adapters that need no dat.conf. The provider libraries are mocks of the same names, which
 * LD_LIBRARY_PATH finds; /etc and the network interfaces are the test's own.
 */
#include "child.h"
#include "mock.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "registry/builtin.h"

struct mock mock;

#define ROOM 40

static DAT_PROVIDER_INFO blocks[ROOM];
static DAT_COUNT count;

static DAT_RETURN list(DAT_COUNT max)
{
	DAT_PROVIDER_INFO *slots[ROOM];
	int i;

	for (i = 0; i < ROOM; i++)
		slots[i] = &blocks[i];
	count = -1;
	return dat_registry_list_providers(max, &count, slots);
}

static DAT_RETURN open_as(const char *name, DAT_BOOLEAN is_thread_safe)
{
	DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia;

	return dat_ia_openv((DAT_NAME_PTR)name, 8, &evd, &ia, 1, 2, is_thread_safe);
}

/* A private /etc, /sys and network, which disappear with the process. */
static void host_enter(void)
{
	if (unshare(CLONE_NEWNS | CLONE_NEWNET) != 0 &&
	    unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET) != 0)
		_exit(CHILD_SKIP);
	if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
	    mount("tmpfs", "/etc", "tmpfs", 0, NULL) != 0 ||
	    mount("tmpfs", "/sys", "tmpfs", 0, NULL) != 0)
		_exit(CHILD_SKIP);
	unsetenv("DAT_OVERRIDE");
}

static void file_write(const char *path, const char *format)
{
	FILE *file = fopen(path, "w");

	must(file != NULL);
	/* at most two of them */
	must(fprintf(file, format, library_get("MOCK_FOREIGN"), library_get("MOCK_FOREIGN")) >= 0);
	must(fclose(file) == 0);
}

static void netdev_add(const char *name, bool is_up, const char *address)
{
	struct sockaddr_in *in;
	struct ifreq request;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	must(fd >= 0);
	/* Every kernel in use can create a bridge. */
	if (ioctl(fd, SIOCBRADDBR, name) != 0)
		_exit(CHILD_SKIP);
	memset(&request, 0, sizeof(request));
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	if (address) {
		in = (struct sockaddr_in *)&request.ifr_addr;
		in->sin_family = AF_INET;
		must(inet_pton(AF_INET, address, &in->sin_addr) == 1);
		must(ioctl(fd, SIOCSIFADDR, &request) == 0);
	}
	/* Setting an address has brought it up. */
	request.ifr_flags = is_up ? IFF_UP : 0;
	must(ioctl(fd, SIOCSIFFLAGS, &request) == 0);
	close(fd);
}

static void without_file(void)
{
	host_enter();
	must(list(8) == DAT_SUCCESS);
	must(count == 1);
	must(strcmp(blocks[0].ia_name, "soft-lo") == 0);
	must(blocks[0].dapl_version_major == 1 && blocks[0].dapl_version_minor == 2);
	must(mock.notes[0] == '\0');
	must(open_as("soft-lo", DAT_FALSE) == DAT_SUCCESS);
	must(strcmp(mock.init_info.ia_name, "soft-lo") == 0);
	must(strcmp(mock.opened_name, "soft-lo") == 0);
	must(strcmp(mock.instance_data, "lo") == 0);
}

/* CONF-41 REG-LIST-13 REG-LIST-15 */
static void registry_list__no_file__soft_lo(void **state)
{
	(void)state;
	child_run(without_file);
}

static void both_safeties(void)
{
	host_enter();
	must(list(8) == DAT_SUCCESS && count == 1);
	must(blocks[0].is_thread_safe == DAT_TRUE);
	must(open_as("soft-lo", DAT_TRUE) == DAT_SUCCESS);
	must(open_as("soft-lo", DAT_FALSE) == DAT_SUCCESS);
	must(mock.inits == 1);
	must(mock.init_info.is_thread_safe == DAT_TRUE);
}

/* CONF-42 */
static void ia_open__builtin__either_thread_safety(void **state)
{
	(void)state;
	child_run(both_safeties);
}

static void interfaces(void)
{
	host_enter();
	netdev_add("up0", true, "10.9.0.1");
	netdev_add("down0", false, "10.9.1.1");
	netdev_add("bare0", false, NULL);
	must(list(8) == DAT_SUCCESS);
	must(count == 2);
	must(strcmp(blocks[0].ia_name, "soft-lo") == 0);
	must(strcmp(blocks[1].ia_name, "soft-up0") == 0);
	must(open_as("soft-up0", DAT_FALSE) == DAT_SUCCESS);
	must(strcmp(mock.instance_data, "up0") == 0);
	must_fail(open_as("soft-down0", DAT_FALSE), DAT_PROVIDER_NOT_FOUND,
		  DAT_NAME_NOT_REGISTERED);
	must_fail(open_as("soft-bare0", DAT_FALSE), DAT_PROVIDER_NOT_FOUND,
		  DAT_NAME_NOT_REGISTERED);
	must_fail(open_as("soft-none", DAT_FALSE), DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
	must_fail(open_as("soft-", DAT_FALSE), DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
	must_fail(open_as("verbs-up0", DAT_FALSE), DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
}

/* CONF-41 */
static void registry_list__interfaces__those_up_with_an_address(void **state)
{
	(void)state;
	child_run(interfaces);
}

static void many_interfaces(void)
{
	char name[IFNAMSIZ], address[32], adapter[32];
	int i;

	host_enter();
	for (i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "br%d", i);
		snprintf(address, sizeof(address), "10.9.%d.1", i);
		netdev_add(name, true, address);
	}
	must(list(8) == DAT_SUCCESS);
	must(count == 8);
	must(strcmp(blocks[0].ia_name, "soft-lo") == 0);
	for (i = 0; i < 20; i++) {
		snprintf(adapter, sizeof(adapter), "soft-br%d", i);
		must(open_as(adapter, DAT_FALSE) == DAT_SUCCESS);
	}
}

/* CONF-43 COMPAT-36 */
static void registry_list__twenty_interfaces__eight_listed_all_open(void **state)
{
	(void)state;
	child_run(many_interfaces);
}

static void other_versions_only(void)
{
	host_enter();
	file_write("/etc/dat.conf", "ofa-v2-lo u2.0 nonthreadsafe default %s v \"\" \"\"\n"
				    "soft-lo u2.0 nonthreadsafe default /none.so v \"\" \"\"\n");
	must(list(8) == DAT_SUCCESS);
	must(count == 1);
	must(strcmp(blocks[0].ia_name, "soft-lo") == 0);
	must(open_as("soft-lo", DAT_FALSE) == DAT_SUCCESS);
}

/* CONF-41: A file that has only lines of another version. */
static void registry_list__file_of_2_0_lines__soft_lo(void **state)
{
	(void)state;
	child_run(other_versions_only);
}

static void beside_a_file(void)
{
	host_enter();
	netdev_add("up0", true, "10.9.0.1");
	file_write("/etc/dat.conf", "soft-up0 u1.2 threadsafe default %s v \"mine\" \"\"\n");
	must(list(8) == DAT_SUCCESS);
	must(count == 1);
	must(strcmp(blocks[0].ia_name, "soft-up0") == 0);
	must(open_as("soft-lo", DAT_FALSE) == DAT_SUCCESS);
	/* A name that the file defines has only the thread safety of the file. */
	must(open_as("soft-up0", DAT_TRUE) == DAT_SUCCESS);
	must(strcmp(mock.instance_data, "mine") == 0);
	must(open_as("soft-up0", DAT_FALSE) ==
	     (DAT_CLASS_ERROR | DAT_PROVIDER_NOT_FOUND | DAT_THREAD_SAFETY_NOT_FOUND));
}

/* CONF-41: with a usable line they can be opened, but are not listed. */
static void ia_open__builtin_beside_a_file__opens_unlisted(void **state)
{
	(void)state;
	child_run(beside_a_file);
}

static void override_empty(void)
{
	must(setenv("DAT_OVERRIDE", "/dev/null", 1) == 0);
	must(list(8) == DAT_SUCCESS);
	must(count == 0);
	must_fail(open_as("soft-lo", DAT_FALSE), DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
}

/* CONF-44 */
static void registry_list__empty_override__no_builtins(void **state)
{
	(void)state;
	child_run(override_empty);
}

static void not_installed(void)
{
	/* The search path is read at program start: go on in a new program without the mocks. */
	setenv("LD_LIBRARY_PATH", library_get("LIBDAT_DIR"), 1);
	setenv("NOT_INSTALLED", "1", 1);
	execl("/proc/self/exe", "test-registry-builtin", (char *)NULL);
	child_exec_failed();
}

static int not_installed_child(void)
{
	host_enter();
	must(list(8) == DAT_SUCCESS);
	must(count == 0);
	must_fail(open_as("soft-lo", DAT_FALSE), DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
	return 0;
}

/* CONF-41: only those whose provider library is installed. */
static void registry_list__provider_not_installed__nothing(void **state)
{
	(void)state;
	child_run(not_installed);
}

/* --- RDMA devices --- */

static void path_make(const char *root, const char *path, const char *text)
{
	char whole[512];
	char *slash;
	int fd;

	snprintf(whole, sizeof(whole), "%s/%s", root, path);
	for (slash = strchr(whole + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(whole, 0755);
		*slash = '/';
	}
	fd = open(whole, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
	must(fd >= 0);
	must(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

static void rdma_devices(void)
{
	char netdevs[16][IFNAMSIZ];
	bool has_roce = false, has_second = false, has_rxe = false, has_ipoib = false;
	bool has_siw = false;
	int found, i;

	host_enter();
	path_make("/etc/sys", "class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/0", "roce0\n");
	path_make("/etc/sys", "class/infiniband/mlx5_0/ports/2/gid_attrs/ndevs/0", "roce1\n");
	path_make("/etc/sys", "class/infiniband/rxe0/parent", "eth7\n");
	path_make("/etc/sys", "class/infiniband/rxe0/ports/1/gid_attrs/ndevs/0", "eth7\n");
	path_make("/etc/sys", "class/infiniband/siw0/ports/1/gids/0",
		  "5254:0012:3456:0000:0000:0000:0000:0000\n");
	path_make("/etc/sys", "class/net/eth5/address", "52:54:00:12:34:56\n");
	path_make("/etc/sys", "class/net/eth6/address", "52:54:00:12:34:57\n");
	path_make("/etc/sys", "class/net/ib0/device/infiniband/mlx5_1", "");
	path_make("/etc/sys", "class/net/eth9/device/vendor", "");
	found = registry_builtin_rdma_netdevs("/etc/sys", netdevs, 16);
	must(found == 5);
	for (i = 0; i < found; i++) {
		has_roce |= strcmp(netdevs[i], "roce0") == 0;
		has_second |= strcmp(netdevs[i], "roce1") == 0;
		has_rxe |= strcmp(netdevs[i], "eth7") == 0;
		has_ipoib |= strcmp(netdevs[i], "ib0") == 0;
		has_siw |= strcmp(netdevs[i], "eth5") == 0;
	}
	must(has_roce && has_second && has_rxe && has_ipoib && has_siw);
	must(registry_builtin_rdma_netdevs("/etc/sys", netdevs, 3) == 3);
	must(registry_builtin_rdma_netdevs("/etc/nothing", netdevs, 16) == 0);
}

/* CONF-41: the names of verbs adapters. */
static void builtin_rdma_netdevs__devices_of_each_kind__their_interfaces(void **state)
{
	(void)state;
	child_run(rdma_devices);
}

static void verbs_adapters(void)
{
	host_enter();
	netdev_add("up0", true, "10.9.0.1");
	path_make("/sys", "class/infiniband/rxe0/parent", "up0\n");
	path_make("/sys", "class/infiniband/rxe0/ports/1/gid_attrs/ndevs/0", "up0\n");
	must(list(8) == DAT_SUCCESS);
	must(count == 3);
	must(strcmp(blocks[0].ia_name, "soft-lo") == 0);
	must(strcmp(blocks[1].ia_name, "verbs-up0") == 0);
	must(strcmp(blocks[2].ia_name, "soft-up0") == 0);
	must(open_as("verbs-up0", DAT_FALSE) == DAT_SUCCESS);
	must(strcmp(mock.opened_name, "verbs-up0") == 0);
	must(strcmp(mock.instance_data, "up0") == 0);
}

/* CONF-41 CONF-43: verbs adapters come before the others of their interfaces. */
static void registry_list__rdma_device__its_verbs_adapter(void **state)
{
	(void)state;
	child_run(verbs_adapters);
}

/* --- lines of the reference, and undefined names --- */

#define SOFT "libdat-soft.so.1"
#define VERBS "libdat-verbs.so.1"
#define REFERENCE(name, library, data)                                                             \
	name " u1.2 nonthreadsafe default " library " dapl.1.2 \"" data "\" \"\"\n"

/* Opens the adapter of a line of the reference: which library of ours serves it, with which data. */
static void line_must_open(const char *name, const char *library, const char *data)
{
	must(open_as(name, DAT_FALSE) == DAT_SUCCESS);
	must(strcmp(mock.opened_name, name) == 0);
	must(strcmp(mock.instance_data, data) == 0);
	must(strcmp(mock.library, library) == 0);
}

static const char reference_text[] =
	"cma u1.2 nonthreadsafe default libdaplcma.so.1 v \"ib0 0\" x\n"
	"path u1.2 nonthreadsafe default /usr/lib64/libdaplcma.so v \"10.9.0.1 0\" x\n"
	"scm u1.2 nonthreadsafe default libdaplscm.so.1 v \"mlx4_0 1\" x\n"
	"ucm u1.2 nonthreadsafe default libdaplucm.so.1 v \"eth0 0\" x\n"
	"address u1.2 nonthreadsafe default libdaplcma.so.1 v \"10.9.1.1\" x\n"
	"eth0 u1.2 nonthreadsafe default udapl_tavor.so.1 v \" \" driver_name=tavor\n"
	"part u1.2 nonthreadsafe default libdaplcma.so.1 v \"10.9.1.11\" x\n"
	"mine u1.2 nonthreadsafe default libmine.so.1 v \"eth0\" x\n"
	"two u1.2 nonthreadsafe default libdaplcma.so.2 v \"eth0\" x\n";

static void reference_lines(void)
{
	host_enter();
	netdev_add("ib0", true, "10.9.0.1");
	netdev_add("eth0", true, "10.9.1.1");
	path_make("/sys", "class/infiniband/mlx4_0/parent", "ib0\n");
	file_write("/etc/dat.conf", reference_text);
	line_must_open("cma", VERBS, "ib0 0");
	line_must_open("path", VERBS, "10.9.0.1 0");
	line_must_open("scm", VERBS, "mlx4_0 1");
	line_must_open("ucm", SOFT, "eth0 0");
	line_must_open("address", SOFT, "10.9.1.1");
	line_must_open("eth0", SOFT, "eth0");
	must_fail(open_as("part", DAT_FALSE), DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
	must_fail(open_as("mine", DAT_FALSE), DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
	must_fail(open_as("two", DAT_FALSE), DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
	/* the thread safety is that of the line */
	must_fail(open_as("cma", DAT_TRUE), DAT_PROVIDER_NOT_FOUND, DAT_THREAD_SAFETY_NOT_FOUND);
}

/* CONF-45 */
static void ia_open__line_of_the_reference__our_provider_of_its_device(void **state)
{
	(void)state;
	child_run(reference_lines);
}

static void reference_lines_twice(void)
{
	DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia;
	int i;

	host_enter();
	netdev_add("eth0", true, "10.9.1.1");
	file_write("/etc/dat.conf", REFERENCE("a", "libdaplcma.so.1", "eth0 0"));
	for (i = 0; i < 3; i++) {
		must(dat_ia_open((DAT_NAME_PTR) "a", 8, &evd, &ia) == DAT_SUCCESS);
		must(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG) == DAT_SUCCESS);
		evd = DAT_HANDLE_NULL;
	}
	/* a library of ours stays in memory */
	must(strcmp(mock.notes, "LIOCFIOCFIOCF") == 0);
}

/* CONF-45 PROV-FINI-02 */
static void ia_open__line_of_the_reference__ended_with_its_last_instance(void **state)
{
	(void)state;
	child_run(reference_lines_twice);
}

static void reference_with_others(void)
{
	host_enter();
	file_write("/etc/dat.conf",
		   REFERENCE("a", "libdaplcma.so.1", "lo 0") REFERENCE("a", "%s", "mine"));
	must(open_as("a", DAT_FALSE) == DAT_SUCCESS);
	must(strcmp(mock.instance_data, "mine") == 0);
}

/* CONF-31 CONF-45: a later line of the same name whose library is there comes first. */
static void ia_open__line_of_the_reference_and_another__the_other(void **state)
{
	(void)state;
	child_run(reference_with_others);
}

static void reference_turned_off(void)
{
	host_enter();
	netdev_add("eth0", true, "10.9.1.1");
	file_write("/etc/dat.conf", REFERENCE("a", "libdaplcma.so.1", "eth0 0"));
	must(setenv("DAT_OPENDAT_REPLACE", "off", 1) == 0);
	must_fail(open_as("a", DAT_FALSE), DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
	must(mock.notes[0] == '\0');
	must(setenv("DAT_OPENDAT_REPLACE", "on", 1) == 0);
	line_must_open("a", SOFT, "eth0 0");
}

/* CONF-47 */
static void ia_open__line_of_the_reference_turned_off__not_registered(void **state)
{
	(void)state;
	child_run(reference_turned_off);
}

static void undefined_names(void)
{
	static const char *const names[] = {"OpenIB-cma", "ib0", "two", "absent", "soft-absent0"};
	size_t i;

	host_enter();
	netdev_add("eth0", true, "10.9.1.1");
	file_write("/etc/dat.conf", "two u2.0 nonthreadsafe default %s v \"\" \"\"\n"
				    "absent u1.2 nonthreadsafe default /none.so v \"\" \"\"\n"
				    "here u1.2 threadsafe default %s v \"here\" \"\"\n");
	must(setenv("DAT_OPENDAT_DEFAULT", "soft-eth0", 1) == 0);
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		must(open_as(names[i], DAT_FALSE) == DAT_SUCCESS);
		must(strcmp(mock.opened_name, "soft-eth0") == 0);
	}
	must(mock.inits == 1);
	/* names that are defined are not concerned */
	must(open_as("here", DAT_TRUE) == DAT_SUCCESS);
	must(strcmp(mock.opened_name, "here") == 0);
	must_fail(open_as("here", DAT_FALSE), DAT_PROVIDER_NOT_FOUND, DAT_THREAD_SAFETY_NOT_FOUND);
	must(setenv("DAT_OPENDAT_DEFAULT", "here", 1) == 0);
	must(open_as("ib0", DAT_TRUE) == DAT_SUCCESS);
	must(strcmp(mock.opened_name, "here") == 0);
	must(setenv("DAT_OPENDAT_DEFAULT", "none", 1) == 0);
	must_fail(open_as("ib0", DAT_FALSE), DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
	must(setenv("DAT_OPENDAT_DEFAULT", "", 1) == 0);
	must_fail(open_as("two", DAT_FALSE), DAT_PROVIDER_NOT_FOUND, DAT_MAJOR_NOT_FOUND);
}

/* CONF-46 */
static void ia_open__name_that_nothing_defines__the_default_adapter(void **state)
{
	(void)state;
	child_run(undefined_names);
}

static void fifo_at(const char *path, bool has_writer)
{
	int fd;

	alarm(20); /* a failure would block */
	must(mkfifo(path, 0600) == 0);
	fd = has_writer ? open(path, O_RDWR | O_CLOEXEC) : -1; /* it never writes */
	must(has_writer == (fd >= 0));
	must(setenv("DAT_OVERRIDE", path, 1) == 0);
	must_fail(list(8), DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
	must_fail(open_as("soft-lo", DAT_FALSE), DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
}

static void override_fifo(void)
{
	host_enter();
	fifo_at("/etc/fifo", false);
}

static void override_silent_fifo(void)
{
	host_enter();
	fifo_at("/etc/fifo", true);
}

/* CONF-04: what is no regular file cannot be read, and does not block. */
static void registry_list__fifo_as_override__missing(void **state)
{
	(void)state;
	child_run(override_fifo);
	child_run(override_silent_fifo);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(registry_list__no_file__soft_lo),
		cmocka_unit_test(ia_open__builtin__either_thread_safety),
		cmocka_unit_test(registry_list__interfaces__those_up_with_an_address),
		cmocka_unit_test(registry_list__twenty_interfaces__eight_listed_all_open),
		cmocka_unit_test(registry_list__file_of_2_0_lines__soft_lo),
		cmocka_unit_test(ia_open__builtin_beside_a_file__opens_unlisted),
		cmocka_unit_test(registry_list__empty_override__no_builtins),
		cmocka_unit_test(registry_list__fifo_as_override__missing),
		cmocka_unit_test(registry_list__provider_not_installed__nothing),
		cmocka_unit_test(builtin_rdma_netdevs__devices_of_each_kind__their_interfaces),
		cmocka_unit_test(registry_list__rdma_device__its_verbs_adapter),
		cmocka_unit_test(ia_open__line_of_the_reference__our_provider_of_its_device),
		cmocka_unit_test(ia_open__line_of_the_reference__ended_with_its_last_instance),
		cmocka_unit_test(ia_open__line_of_the_reference_and_another__the_other),
		cmocka_unit_test(ia_open__line_of_the_reference_turned_off__not_registered),
		cmocka_unit_test(ia_open__name_that_nothing_defines__the_default_adapter),
	};

	if (getenv("NOT_INSTALLED"))
		return not_installed_child();
	return cmocka_run_group_tests_name("registry builtin", tests, NULL, NULL);
}
