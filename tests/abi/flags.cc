// SPDX-License-Identifier: BSD-2-Clause
/*
 * C++: flags of one type combine without a cast, in constant expressions too, and stay integers
 * elsewhere. check_cxx compiles this as several standards, and runs it.
 */
#include <dat/opendat.h>
#include <dat/udat.h>

static DAT_EVD_FLAGS evd_flags(DAT_EVD_FLAGS flags)
{
	return flags;
}

static int classify(int flags)
{
	switch (flags) {
	case DAT_EVD_DTO_FLAG | DAT_EVD_CR_FLAG: /* a constant, in C++98 too */
		return 1;
	default:
		return 0;
	}
}

#if __cplusplus >= 201103L
static_assert((DAT_EVD_DTO_FLAG | DAT_EVD_CR_FLAG) == 0x30, "or");
static_assert((DAT_EVD_DEFAULT_FLAG & ~DAT_EVD_ASYNC_FLAG) == 0xf0, "without");
static_assert(sizeof(DAT_EVD_FLAGS) == 4, "the size is unchanged");

static bool combine()
{
	DAT_EVD_FLAGS evd = evd_flags(DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG);
	DAT_MEM_PRIV_FLAGS priv = DAT_MEM_PRIV_READ_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG;
	DAT_COMPLETION_FLAGS how = DAT_COMPLETION_SUPPRESS_FLAG | DAT_COMPLETION_BARRIER_FENCE_FLAG;
	DAT_CONNECT_FLAGS connect = DAT_CONNECT_DEFAULT_FLAG | DAT_CONNECT_MULTIPATH_FLAG;
	DAT_LMR_PARAM_MASK lmr = DAT_LMR_FIELD_LENGTH | DAT_LMR_FIELD_PZ_HANDLE;
	DAT_RMR_PARAM_MASK rmr = DAT_RMR_FIELD_PZ_HANDLE | DAT_RMR_FIELD_LMR_TRIPLET;
	DAT_SRQ_PARAM_MASK srq = DAT_SRQ_FIELD_PZ_HANDLE | DAT_SRQ_FIELD_LOW_WATERMARK;
	DAT_PSP_PARAM_MASK psp = DAT_PSP_FIELD_CONN_QUAL | DAT_PSP_FIELD_EVD_HANDLE;
	DAT_RSP_PARAM_MASK rsp = DAT_RSP_FIELD_CONN_QUAL | DAT_RSP_FIELD_EVD_HANDLE;
	DAT_CR_PARAM_MASK cr = DAT_CR_FIELD_PRIVATE_DATA | DAT_CR_FIELD_PRIVATE_DATA_SIZE;
	DAT_EVD_PARAM_MASK query = DAT_EVD_FIELD_CNO | DAT_EVD_FIELD_EVD_QLEN;
	DAT_CNO_PARAM_MASK cno = DAT_CNO_FIELD_IA_HANDLE | DAT_CNO_FIELD_AGENT;
	DAT_OPENDAT_PEER_FLAGS peer = DAT_OPENDAT_PEER_USER | DAT_OPENDAT_PEER_TCP;

	priv |= DAT_MEM_PRIV_LOCAL_WRITE_FLAG;
	priv &= ~DAT_MEM_PRIV_REMOTE_READ_FLAG;
	return evd == 0x60 && priv == 0x31 && how == 0x9 && connect == 1 &&
	       (lmr & DAT_LMR_FIELD_LENGTH) && rmr && srq && psp && rsp && cr && query &&
	       cno == DAT_CNO_FIELD_ALL && peer;
}
#else
static bool combine()
{
	return evd_flags((DAT_EVD_FLAGS)(DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG)) == 0x60;
}
#endif

int main()
{
	/* beside numbers they are numbers, as before */
	unsigned long mask = 0x20ul | DAT_EVD_CR_FLAG;
	int sum = (DAT_EVD_DTO_FLAG | DAT_EVD_CR_FLAG) + 1;

	return combine() && mask == 0x30 && sum == 0x31 && classify(0x30) == 1 ? 0 : 1;
}
