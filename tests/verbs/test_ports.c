// SPDX-License-Identifier: BSD-2-Clause
/* A device with two ports: each is an adapter of its own. */
#include "rig.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <dat/dat_registry.h>

#include "core/base/instance.h"
#include "verbs/device/device.h"

void dat_provider_init(const DAT_PROVIDER_INFO *info, const char *instance_data);

static struct rig rig;

/* Opens the IA of the second port. rig's is that of the first. */
static DAT_IA_HANDLE open_second(void)
{
	DAT_PROVIDER_INFO info = {.ia_name = "verbs-fake-2",
				  .dapl_version_major = 1,
				  .dapl_version_minor = 2,
				  .is_thread_safe = DAT_TRUE};
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia;

	dat_provider_init(&info, "127.0.0.2");
	assert_int_equal(core_ia_open_safe((DAT_NAME_PTR) "verbs-fake-2", 16, &async, &ia),
			 DAT_SUCCESS);
	return ia;
}

static const struct core_link *link_of(DAT_IA_HANDLE ia)
{
	return &((const struct core_ia *)((struct core_handle *)ia)->object)->link;
}

/* Each port has its own address and limits. The attribute "device" names device and port. */
static void check_port(DAT_IA_HANDLE ia, uint8_t port, const char *device)
{
	const struct sockaddr_in *address;
	DAT_IA_ATTR attr;

	assert_int_equal(core_ia_query(ia, NULL, DAT_IA_ALL, &attr, 0, NULL), DAT_SUCCESS);
	address = (const struct sockaddr_in *)(const void *)attr.ia_address_ptr;
	assert_int_equal(ntohl(address->sin_addr.s_addr), INADDR_LOOPBACK - 1 + port);
	assert_int_equal(attr.max_message_size, FAKE_MESSAGE_MAX >> port);
	assert_int_equal(attr.max_rdma_size, FAKE_MESSAGE_MAX >> port);
	assert_string_equal(attr.transport_attr[0].name, "device");
	assert_string_equal(attr.transport_attr[0].value, device);
	assert_int_equal(link_of(ia)->port, port);
	assert_int_equal(link_of(ia)->gid[14], port);
	assert_false(link_of(ia)->is_down);
}

/* D2-ATTR-08 */
static void ia_open__port_down__known(void **state)
{
	(void)state;
	fake_port(false);
	assert_int_equal(rig_open(&rig), DAT_SUCCESS);
	assert_true(link_of(rig.ia)->is_down);
	fake_port(true);
	rig_close(&rig);
}

/* IA-QUERY-11: an object of one IA is not accepted by the other */
static void ia_query__two_ports__an_adapter_each(void **state)
{
	DAT_IA_HANDLE second;
	DAT_PZ_HANDLE pz;
	DAT_EP_HANDLE ep;

	(void)state;
	assert_int_equal(rig_open(&rig), DAT_SUCCESS);
	assert_int_equal(rig_make(&rig), DAT_SUCCESS);
	second = open_second();
	check_port(rig.ia, 1, "fake0 port 1");
	check_port(second, 2, "fake0 port 2");
	assert_int_equal(core_pz_create(second, &pz), DAT_SUCCESS);
	assert_int_equal(core_ep_create(rig.ia, pz, rig.a.dto, rig.a.dto, rig.a.conn, NULL, &ep),
			 core_error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ));
	assert_int_equal(core_ia_close(second, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
	rig_close(&rig);
}

/* IA-OPEN-34: a device cannot tell users, and does not let pass what it cannot tell */
static void ia_open__peers_of_one_user_only__not_supported(void **state)
{
	(void)state;
	assert_int_equal(setenv("DAT_PEERS", "user", 1), 0);
	assert_int_equal(rig_open(&rig), core_error(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE));
	assert_ptr_equal(rig.ia, DAT_HANDLE_NULL);
	assert_int_equal(unsetenv("DAT_PEERS"), 0);
}

/* The name of the local socket that makes a qualifier unique on the host. */
static socklen_t claim_name(DAT_CONN_QUAL qual, struct sockaddr_un *name)
{
	int len;

	memset(name, 0, sizeof(*name));
	name->sun_family = AF_UNIX;
	len = snprintf(name->sun_path + 1, sizeof(name->sun_path) - 1,
		       "opendat.verbs.1/127.0.0.1/%llx", (unsigned long long)qual);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len);
}

/* PSP-CREATE-16: the name is taken, and takes no bytes and no descriptors from anyone */
static void psp_create__local_socket__nobody_can_send_to_it(void **state)
{
	static const int types[] = {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET};
	struct sockaddr_un name;
	unsigned taken = 0;
	socklen_t size;

	(void)state;
	rig.qual = 0;
	assert_int_equal(rig_open(&rig), DAT_SUCCESS);
	assert_int_equal(rig_make(&rig), DAT_SUCCESS);
	size = claim_name(rig.qual, &name);
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		int fd = socket(AF_UNIX, types[i] | SOCK_CLOEXEC, 0);

		assert_true(fd >= 0);
		assert_int_equal(connect(fd, (struct sockaddr *)&name, size), -1);
		assert_int_equal(errno, ECONNREFUSED);
		taken += bind(fd, (struct sockaddr *)&name, size) && errno == EADDRINUSE;
		close(fd);
	}
	assert_int_equal(taken, 1);
	rig_close(&rig);
}

/* Does a thread of this process have that name? A thread takes it when it begins to run. */
static bool has_thread(const char *name)
{
	char path[64], found[32];
	DIR *folder = opendir("/proc/self/task");
	struct dirent *entry;
	bool has = false;

	while (folder && !has && (entry = readdir(folder))) {
		FILE *comm;

		snprintf(path, sizeof(path), "/proc/self/task/%.16s/comm", entry->d_name);
		comm = fopen(path, "re");
		has = comm && fgets(found, sizeof(found), comm) &&
		      !strncmp(found, name, strlen(name));
		if (comm)
			fclose(comm);
	}
	closedir(folder);
	return has;
}

static void ia_open__service_thread__has_a_name(void **state)
{
	(void)state;
	assert_int_equal(rig_open(&rig), DAT_SUCCESS);
	for (unsigned int tries = 0; !has_thread("dat-verbs"); tries++) {
		assert_true(tries < 20000);
		usleep(1000);
	}
	rig_close(&rig);
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

/* GEN-40: the first of two threads that open devices is done, the second still makes descriptors */
static void ia_open__two_at_once_without_stdin__number_stays_taken(void **state)
{
	int input = dup(STDIN_FILENO);

	(void)state;
	close(STDIN_FILENO);
	vrb_fds_fill();
	assert_true(is_open(STDIN_FILENO));
	vrb_fds_fill();
	vrb_fds_unfill();
	assert_true(is_open(STDIN_FILENO));
	vrb_fds_unfill();
	assert_false(is_open(STDIN_FILENO));
	assert_int_equal(input < 0 ? 0 : dup2(input, STDIN_FILENO), STDIN_FILENO);
}

/* GEN-40: a child has no thread that gives the number free */
static void fork__while_a_device_is_opened__number_is_free(void **state)
{
	int input = dup(STDIN_FILENO), status;
	pid_t child;

	(void)state;
	close(STDIN_FILENO);
	vrb_fds_fill();
	child = fork();
	if (!child)
		_exit(is_open(STDIN_FILENO));
	vrb_fds_unfill();
	assert_int_equal(input < 0 ? 0 : dup2(input, STDIN_FILENO), STDIN_FILENO);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ia_query__two_ports__an_adapter_each),
		cmocka_unit_test(ia_open__port_down__known),
		cmocka_unit_test(ia_open__peers_of_one_user_only__not_supported),
		cmocka_unit_test(psp_create__local_socket__nobody_can_send_to_it),
		cmocka_unit_test(ia_open__service_thread__has_a_name),
		cmocka_unit_test(ia_open__two_at_once_without_stdin__number_stays_taken),
		cmocka_unit_test(fork__while_a_device_is_opened__number_is_free),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
