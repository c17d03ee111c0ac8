// A joint controller in the shape of ros2_control: gravity compensation, or computed torque along a reference.
// The dynamics are the generated functions of arm.h; all arrays are of fixed size, so update() allocates nothing.
#pragma once

#include <array>
#include <cmath>
#include <string>

#include "arm.h"
#include "controller_interface/controller_interface.hpp"

class ComputedTorque : public controller_interface::ControllerInterface
{
public:
    using Joints = std::array<double, ARM_NV>;

    struct Reference
    {
        Joints q{}, v{}, a{};
        bool given = false;
    };

    Reference reference;  // in a robot: filled from a real-time buffer that a subscription writes

    controller_interface::CallbackReturn on_init() override
    {
        return controller_interface::CallbackReturn::SUCCESS;
    }

    controller_interface::InterfaceConfiguration command_interface_configuration() const override
    {
        return names({"effort"});
    }

    controller_interface::InterfaceConfiguration state_interface_configuration() const override
    {
        return names({"position", "velocity"});
    }

    controller_interface::return_type update(const rclcpp::Time &, const rclcpp::Duration &) override
    {
        Joints q, v, a, tau;
        for (std::size_t i = 0; i < ARM_NV; ++i) {
            q[i] = state_interfaces_[i].get_value();
            v[i] = state_interfaces_[ARM_NV + i].get_value();
        }
        if (reference.given) {
            for (std::size_t i = 0; i < ARM_NV; ++i) {
                a[i] = reference.a[i] + stiffness * (reference.q[i] - q[i]) + damping * (reference.v[i] - v[i]);
            }
            arm_inverse_dynamics(q.data(), v.data(), a.data(), tau.data());
        } else {
            arm_gravity_torque(q.data(), tau.data());
        }
        for (std::size_t i = 0; i < ARM_NV; ++i) {
            if (!std::isfinite(tau[i])) {
                return controller_interface::return_type::ERROR;
            }
        }
        for (std::size_t i = 0; i < ARM_NV; ++i) {
            (void)command_interfaces_[i].set_value(tau[i]);
        }
        return controller_interface::return_type::OK;
    }

private:
    static constexpr double stiffness = 400.0;  // 1/s2: errors die out as those of a mass on a spring at 20 rad/s
    static constexpr double damping = 40.0;     // 1/s

    static controller_interface::InterfaceConfiguration names(const std::vector<std::string> & kinds)
    {
        controller_interface::InterfaceConfiguration out;
        out.type = controller_interface::interface_configuration_type::INDIVIDUAL;
        for (const auto & kind : kinds) {
            for (std::size_t i = 0; i < ARM_NV; ++i) {
                out.names.push_back("joint" + std::to_string(i + 1) + "/" + kind);
            }
        }
        return out;
    }
};
