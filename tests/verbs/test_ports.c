// SPDX-License-Identifier: BSD-2-Clause
/* A device with two ports: each is an adapter of its own. */
#include "rig.h"

#include <dirent.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <dat/dat_registry.h>

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ia_query__two_ports__an_adapter_each),
		cmocka_unit_test(ia_open__peers_of_one_user_only__not_supported),
		cmocka_unit_test(ia_open__service_thread__has_a_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
