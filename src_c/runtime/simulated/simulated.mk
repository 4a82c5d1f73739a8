# The same sources under SimGrid's SMPI: `make simulated` (mpilab/runners/simgrid.py asks for it).
#
# An SMPI program is a shared object that contains everything, because every rank gets a copy of it.
# It is built twice: with debugging information, for source lines, and without, for the copies.

SMPICC    ?= smpicc
SIMULATED  = $(BUILD)/simulated
SIM_FLAGS  = -std=c11 $(WARNINGS) -O2 -gdwarf-4 -Iinclude -MMD -MP \
             -fno-omit-frame-pointer -fno-optimize-sibling-calls -DSMPI_NO_OVERRIDE_MALLOC \
             -DMPILAB_OURS -include runtime/simulated/simulated.h
# What SMPI cannot run unchanged has a counterpart in runtime/simulated/; files and shared memory are
# not simulated.
SIM_KERNELS  = $(filter-out read/%.c shared/%.c,$(KERNELS))
SIM_RECORDER = $(filter-out runtime/recorder/failures.c,$(RECORDER))
SIM_HARNESS  = $(filter-out runtime/harness/openmpi.c runtime/harness/han.c runtime/harness/switches.c runtime/harness/monitoring.c \
               runtime/harness/printed.c runtime/harness/read.c runtime/harness/agreement.c,$(HARNESS)) $(MAIN)
SIM_OWN      = $(wildcard runtime/simulated/*.c)
sim_object   = $(patsubst %.c,$(SIMULATED)/%.o,$(1))

$(SIMULATED)/%.o: %.c
	@mkdir -p $(@D)
	@echo '$<' > $@.source # smpicc would make the path absolute, and split it at blanks
	$(SMPICC) $(SIM_FLAGS) -c @$@.source -o $@

# The harness's own MPI calls bypass the recorder, as they do where it is a separate library.
# Ranks leave its barriers at the same moment, and wait for each other between cases and at the end.
$(SIMULATED)/harness.o: runtime/simulated/simulated.mk $(call sim_object,$(SIM_HARNESS))
	ld -r -o $@.all $(filter %.o,$^)
	nm -u $@.all | sed -n 's/.* \(MPI_[A-Z][a-z].*\)/\1 P\1/p' | \
	    sed 's/ PMPI_Barrier/ simulated_barrier/; s/ PMPI_Comm_split$$/ simulated_comm_split/; s/ PMPI_Finalize$$/ simulated_finalize/; s/ PMPI_Type_create_resized/ simulated_type_create_resized/' \
	    > $@.names
	objcopy --redefine-syms=$@.names $@.all $@

$(SIMULATED)/libsimulated.a: $(SIMULATED)/harness.o $(call sim_object,$(SIM_RECORDER) $(SIM_OWN))
	@rm -f $@
	ar rcs $@ $^

$(SIMULATED)/mpilab_kernels.so: $(call sim_object,$(SIM_KERNELS)) $(SIMULATED)/libsimulated.a
	$(SMPICC) -shared -Wl,-Bsymbolic -o $@ $(call sim_object,$(SIM_KERNELS)) \
	    -Wl,--whole-archive $(SIMULATED)/libsimulated.a -Wl,--no-whole-archive -lm -ldl
	objcopy --strip-all $@ $(@:.so=.part)
	mv $(@:.so=.part) $(@:.so=.run)

simulated: $(SIMULATED)/mpilab_kernels.so

# The jail's kernels, simulated. make_constants needs only the numbers in SMPI's mpi.h; smpicc would
# make a simulation of it, too, so it is compiled without.
SIM_JAIL = $(SIMULATED)/jail

$(SIM_JAIL)/constants.h: runtime/jail/make_constants.c
	@mkdir -p $(@D)
	$(CC) -I"$$($(SMPICC) -E $< | sed -n 's|^# 1 "\(.*\)/mpi.h".*|\1|p' | head -n 1)" \
	    -DMPILAB_SIMULATED -o $(@D)/make_constants $<
	$(@D)/make_constants > $@

$(SIM_JAIL)/%.o: runtime/jail/%.c
	@mkdir -p $(@D)
	@echo '$<' > $@.source
	$(SMPICC) $(subst -std=c11,-std=gnu11,$(SIM_FLAGS)) -Iruntime/jail -DMPILAB_SIMULATED \
	    -DMPILAB_WASM2C=$(WASM2C) -c @$@.source -o $@

simulated-jail: $(SIM_JAIL)/shim.o $(SIM_JAIL)/wasm2c_runtime.o $(SIM_JAIL)/inside.o

# Random calls of the shim (../jail/fuzz.c), with sanitizers. Its counterparts of MPI's calls belong to
# it; the harness does not.
SIM_FUZZED = $(JAIL)/fuzz.c $(JAIL)/wasm2c_runtime.c $(SIM_RECORDER) \
             $(filter-out %/absent.c %/agreement.c %/printed.c,$(SIM_OWN))

$(SIM_JAIL)/fuzz.so: $(SIM_FUZZED) $(JAIL)/shim.c $(JAIL)/calls.inc $(JAIL)/jail.h \
                     $(SIM_JAIL)/fuzz_calls.inc $(wildcard runtime/recorder/*.h runtime/simulated/*.h)
	@echo '$(SIM_FUZZED)' > $@.sources
	$(SMPICC) $(filter-out -O2 -MMD -MP,$(subst -std=c11,-std=gnu11,$(SIM_FLAGS))) $(FUZZ_FLAGS) \
	    -I$(JAIL) -I$(SIM_JAIL) -DMPILAB_SIMULATED -DMPILAB_WASM2C=$(WASM2C) @$@.sources \
	    -shared -Wl,-Bsymbolic -o $@ -ldl

$(SIM_JAIL)/fuzz_preloaded.so: $(JAIL)/fuzz_preloaded.c
	@mkdir -p $(@D)
	$(CC) -shared -fPIC -O1 $(WARNINGS) -o $@ $< -ldl

simulated-jail-fuzz: $(SIM_JAIL)/fuzz.so $(SIM_JAIL)/fuzz_preloaded.so

-include $(patsubst %.o,%.d,$(call sim_object,$(SIM_KERNELS) $(SIM_RECORDER) $(SIM_HARNESS) $(SIM_OWN)))
-include $(wildcard $(SIM_JAIL)/*.d)

.PHONY: simulated simulated-jail simulated-jail-fuzz
